import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from config.lib import failpoint
from tests.config.starting import PRODUCTION, refusal

SANDBOX = {"ENVIRONMENT": "sandbox", "BASE_URL": "https://sandbox.example"}


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Path:
    settings.FAIL_POINTS = str(tmp_path)
    return tmp_path


class TestWithoutTheSetting:
    def test_is_inert_and_touches_no_file(
        self, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "answer_made").write_text("raise")
        monkeypatch.chdir(tmp_path)
        settings.FAIL_POINTS = ""

        def touched(*_: object) -> None:
            raise AssertionError("a file was touched")

        with monkeypatch.context() as patched:
            patched.setattr(Path, "rename", touched)
            patched.setattr(failpoint, "Path", touched)
            for point in failpoint.POINTS:
                failpoint.reach(point)
        assert (tmp_path / "answer_made").exists()

    def test_is_the_default_of_the_service(self, settings: Settings) -> None:
        assert settings.FAIL_POINTS == ""


class TestReach:
    def test_does_nothing_if_no_point_is_armed(self, folder: Path) -> None:
        (folder / "before_call.capture").write_text("raise")
        failpoint.reach("before_call", "refund")
        failpoint.reach("after_call", "capture")
        assert [path.name for path in folder.iterdir()] == ["before_call.capture"]

    @pytest.mark.parametrize(("point", "detail"), [("answer_kept", ""), ("before_commit", "capture")])
    def test_raises_once(self, folder: Path, point: str, detail: str) -> None:
        name = f"{point}.{detail}" if detail else point
        (folder / name).write_text("raise")
        with pytest.raises(failpoint.Failed, match=name):
            failpoint.reach(point, detail)
        failpoint.reach(point, detail)
        assert list(folder.iterdir()) == []

    def test_sleeps_once(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        slept: list[float] = []
        monkeypatch.setattr(time, "sleep", slept.append)
        (folder / "key_claimed").write_text("sleep 2.5")
        failpoint.reach("key_claimed")
        failpoint.reach("key_claimed")
        assert slept == [2.5]

    def test_kills_the_process_on_the_spot_and_once(self, folder: Path) -> None:
        (folder / "after_commit.void").write_text("kill")
        script = "from config.lib import failpoint; failpoint.reach('after_commit', 'void'); print('went on')"
        ends = [self.run(script, folder) for _ in range(2)]
        assert ends == [(-signal.SIGKILL, ""), (0, "went on\n")]

    def run(self, script: str, folder: Path) -> tuple[int, str]:
        environment = {
            **os.environ,
            "FAIL_POINTS": str(folder),
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        ended = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
        )
        return ended.returncode, ended.stdout

    def test_refuses_an_unknown_point(self, folder: Path) -> None:
        with pytest.raises(ValueError, match="no fail point"):
            failpoint.reach("before_lunch")


class TestStartUp:
    @pytest.mark.parametrize("mix", [SANDBOX, PRODUCTION], ids=["sandbox", "production"])
    def test_refuses_fail_points_outside_local_mode(self, mix: dict[str, str]) -> None:
        reason = refusal(mix | {"FAIL_POINTS": "/tmp/points"})
        assert "FAIL_POINTS is only for local. Remove it." in reason

    def test_accepts_fail_points_in_local_mode(self) -> None:
        assert refusal({"ENVIRONMENT": "local", "FAIL_POINTS": "/tmp/points"}) == ""
