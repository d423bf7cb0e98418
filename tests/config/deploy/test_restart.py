"""The web processes restart under load behind nginx, as under systemd with the socket unit, and no call fails."""

import collections
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.config.deploy import package, test_proxy
from tests.config.deploy.installation import until
from tests.config.deploy.test_proxy import Proxy

pytestmark = [pytest.mark.long, pytest.mark.journey, pytest.mark.rule("environment.restart")]
CALLERS, RESTARTS = 4, 3
# systemd passes the socket as descriptor 3, and names the process for which it is meant.
ACTIVATED = 'exec env LISTEN_PID=$$ LISTEN_FDS=1 "$@"'
WEB = (sys.executable, *package.unit_command("web")[3:])


@pytest.fixture
def nginx() -> Iterator[Proxy]:
    with tempfile.TemporaryDirectory(prefix="checkout-restart-") as folder:
        os.chmod(folder, 0o755)
        with test_proxy.running(Path(folder)) as made:
            yield made


class Web:
    """The web processes, on a socket that stays open while they restart."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            ["sh", "-c", ACTIVATED, "sh", *WEB],
            cwd=package.ROOT,
            env={**os.environ, "WEB_CONCURRENCY": "2"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3,),
            preexec_fn=lambda: os.dup2(self._listener.fileno(), 3),  # noqa: PLW1509 - only calls dup2
        )

    def end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)


def call(nginx: Proxy, number: int) -> int:
    """Make a read or a write call on a new connection. Return its status."""
    url = f"https://localhost:{nginx.https}"
    if number % 2:
        return requests.get(f"{url}/api/schema", verify=False, timeout=30).status_code
    form = {"grant_type": "client_credentials", "client_id": "x", "client_secret": "y"}
    return requests.post(f"{url}/oauth/token", data=form, verify=False, timeout=30).status_code


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_no_call_fails_while_the_web_processes_restart(nginx: Proxy) -> None:
    answers: collections.Counter[str] = collections.Counter()
    is_over = threading.Event()

    def call_again_and_again(caller: int) -> None:
        number = caller
        while not is_over.is_set():
            try:
                answers[str(call(nginx, number))] += 1
            except requests.RequestException as error:
                answers[type(error).__name__] += 1
            number += 1

    with socket.create_server(("127.0.0.1", nginx.web), backlog=2048) as listener:
        web = Web(listener)
        until(lambda: call(nginx, 1) == 200, within=60)
        threads = [threading.Thread(target=call_again_and_again, args=(caller,)) for caller in range(CALLERS)]
        for thread in threads:
            thread.start()
        for _ in range(RESTARTS):
            time.sleep(2)
            web.end()
            web.start()
        with contextlib.suppress(AssertionError):
            until(lambda: answers["200"] > 200, within=60)
        is_over.set()
        for thread in threads:
            thread.join(60)
        web.end()
    # Wrong credentials are refused. After 20 failures, every attempt is refused for a minute.
    assert set(answers) <= {"200", "401", "429"}
    assert answers["200"] > 100 and answers["401"] + answers["429"] > 100
