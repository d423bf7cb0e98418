import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.config.local import living
from tests.journeys.service import free_ports

ROOT = Path(__file__).resolve().parents[3]
STAND_IN = Path(__file__).with_name("stand_in.py")
KEYS = {
    *("base_url", "client_id", "client_secret", "portal_url", "portal_email", "portal_password"),
    *("admin_url", "admin_username", "admin_password", "shop_url"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


ports = pytest.fixture(free_ports)


@contextmanager
def started(folder: Path, *others: str, **variables: object) -> Iterator["subprocess.Popen[str]"]:
    """Start stand_in.py in the folder. Kill it if it still runs when the block ends."""
    # A run that was killed does not delete this file.
    (folder / "sandbox.json").unlink(missing_ok=True)
    mine = {name: text for name, text in os.environ.items() if name in {"PATH", "HOME", "TMPDIR", "LANG"}}
    mine |= {"PYTHONPATH": str(ROOT)} | {name: str(text) for name, text in variables.items()}
    with subprocess.Popen(
        [sys.executable, STAND_IN, folder, *others],
        env=mine,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def is_ready(folder: Path) -> bool:
    return living.within(15, (folder / "sandbox.json").exists)


class TestRefusal:
    def test_a_port_in_use_is_one_line_and_a_failure(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with started(folder, PORT=port) as process:
                output, _ = process.communicate(timeout=10)
        reason = "cannot be used (address already in use): choose another with PORT=… make run"
        assert output == f"make run: Port {port} {reason}\n"
        assert process.returncode == 1
        assert not (folder / "postgres").exists()

    @pytest.mark.parametrize("port", ["http", "0", "65536", "-1"])
    def test_an_invalid_port_is_one_line_and_a_failure(self, folder: Path, port: str) -> None:
        with started(folder, PORT=port) as process:
            output, _ = process.communicate(timeout=10)
        assert output == f"make run: PORT must be a number from 1 to 65535, not {port!r}.\n"
        assert process.returncode == 1


class TestRun:
    @pytest.mark.rule("environment.run")
    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
    def test_announces_itself_and_leaves_no_process(
        self, folder: Path, ports: tuple[str, str], how: signal.Signals
    ) -> None:
        with started(folder, PORT=ports[0], SHOP_PORT=ports[1]) as process:
            assert is_ready(folder)
            sandbox = folder / "sandbox.json"
            known = json.loads(sandbox.read_text())
            assert set(known) == KEYS
            assert known["base_url"] == f"http://127.0.0.1:{ports[0]}"
            assert known["portal_url"] == f"http://localhost:{ports[0]}/portal"
            assert known["admin_url"] == f"http://localhost:{ports[0]}/admin/"
            assert known["shop_url"] == f"http://127.0.0.1:{ports[1]}"
            assert sandbox.stat().st_mode & 0o777 == 0o600
            process.send_signal(how)
            output, _ = process.communicate(timeout=10)
        assert process.returncode == 0
        assert "seed | seeding postgresql\n" in output
        assert "web  | answered /readyz\n" in output
        assert known["client_secret"] in output
        assert living.processes_in(folder) == []
        assert not sandbox.exists()
        assert not (folder / "environment.json").exists()

    def test_names_the_service_that_ended_and_fails(self, folder: Path, ports: tuple[str, str]) -> None:
        with started(folder, "mortal", PORT=ports[0], SHOP_PORT=ports[1]) as process:
            output, _ = process.communicate(timeout=15)
        assert output.endswith("make run: mortal ended unexpectedly with exit code 3.\n")
        assert process.returncode == 1
        assert living.processes_in(folder) == []

    @pytest.mark.rule("environment.run")
    def test_a_killed_run_leaves_no_process_and_the_next_one_starts(
        self, folder: Path, ports: tuple[str, str]
    ) -> None:
        with started(folder, PORT=ports[0], SHOP_PORT=ports[1]) as process:
            assert is_ready(folder)
            process.kill()
        assert living.within(5, lambda: living.processes_in(folder) == [])
        with started(folder, PORT=ports[0], SHOP_PORT=ports[1]) as process:
            assert is_ready(folder)
            process.terminate()
            assert process.wait(timeout=10) == 0

    @pytest.mark.long
    def test_ends_within_ten_seconds_even_if_a_service_does_not(
        self, folder: Path, ports: tuple[str, str]
    ) -> None:
        with started(folder, "stubborn", PORT=ports[0], SHOP_PORT=ports[1]) as process:
            assert is_ready(folder)
            process.terminate()
            assert process.wait(timeout=10) == 0
        assert living.processes_in(folder) == []
