"""The `version` command, the first line of the log and CHANGELOG.md name the same version."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from config import version
from tests.config import starting

ROOT = starting.SETTINGS.parents[1]


def test_the_version_has_an_entry_in_the_changelog() -> None:
    assert f"\n## {version.VERSION} (" in (ROOT / "CHANGELOG.md").read_text()


def test_the_version_command_prints_the_version() -> None:
    command = [sys.executable, str(Path("manage.py")), "version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == f"{version.running_version()}\n"


@pytest.fixture
def _unknown() -> Iterator[None]:
    """Clear the cached version before and after the test."""
    version.running_version.cache_clear()
    yield
    version.running_version.cache_clear()


@pytest.mark.usefixtures("_unknown")
class TestTheCommit:
    def test_is_read_from_git_in_a_repository(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("COMMIT", raising=False)
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert version.running_version() == f"{version.VERSION}+{head.stdout[:12]}"

    def test_is_read_from_a_variable_in_an_image(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COMMIT", "0123456789abcdef0123456789abcdef01234567")
        assert version.running_version() == f"{version.VERSION}+0123456789ab"

    def test_is_left_out_if_it_is_unknown(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("COMMIT", raising=False)
        monkeypatch.setattr(version, "ROOT", tmp_path)
        assert version.running_version() == version.VERSION


@pytest.mark.parametrize("part", ["web", "worker", "beat"])
def test_the_version_is_announced_in_the_log(part: str) -> None:
    with capture_logs(processors=[version.add]) as lines:
        version.announce(part)
    assert lines == [
        {"event": "begins", "part": part, "version": version.running_version(), "log_level": "info"}
    ]
