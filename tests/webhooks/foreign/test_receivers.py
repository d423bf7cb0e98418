"""The README's receivers, taken from the README and run for real: they come to the vectors' verdicts."""

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from config.local import children
from tests.webhooks import vectors
from webhooks import signing

BLOCKS = dict(re.findall(r"^```(python|js|php)\n(.*?)^```$", Path("README.md").read_text(), re.M | re.S))
COMMANDS = {
    "python": ["python3", "receiver.py"],
    "js": ["node", "receiver.js"],
    "php": [
        "php",
        "-n",
        "-S",
        "127.0.0.1:{port}",
        "receiver.php",
    ],  # -n: PHP's own settings, as with no php.ini
}
SUFFIXES = {"python": "py"}
# What makes a receiver's act fail until there is a file `api` in its folder.
NEEDS_API = {
    "python": ('print("act on"', 'os.stat("api"), print("act on"'),
    "js": ("console.log('act on'", "fs.statSync('api') && console.log('act on'"),
    "php": ("error_log('act on '", "file_exists('api') || throw new Exception('no'); error_log('act on '"),
}
languages = pytest.mark.parametrize("language", COMMANDS)


class Running(NamedTuple):
    """A receiver, in a folder of its own."""

    folder: Path
    port: str

    def post(self, body: bytes, headers: Mapping[str, str]) -> int:
        """Return the status of the answer, which must come within five seconds; 0 if it hangs up without one."""
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=5)
        encoded = {name: text.encode() for name, text in headers.items()}
        try:
            connection.request("POST", "/", body, encoded)
            return connection.getresponse().status
        except http.client.RemoteDisconnected:
            return 0
        finally:
            connection.close()

    def acts(self) -> list[str]:
        """The ids of the events that it has acted on, in order."""
        return re.findall(r"act on (\S+)", (self.folder / "output").read_text())

    def listens(self) -> bool:
        try:
            http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=1).connect()
        except OSError:
            return False
        return True


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the README's receiver in a language, with these signing secrets, and stop it at the end.

    With `now` its clock stands still at that unix time. With `needs_api` it can't act until there is one.
    """
    with ExitStack() as stack:

        def started(
            language: str, secrets: list[str], now: int | None = None, *, needs_api: bool = False
        ) -> Running:
            port = held_port(stack)
            receiver = Running(tmp_path / str(len(list(tmp_path.iterdir()))), port)
            receiver.folder.mkdir()
            suffix = SUFFIXES.get(language, language)
            source = BLOCKS[language].replace(*NEEDS_API[language]) if needs_api else BLOCKS[language]
            (receiver.folder / f"receiver.{suffix}").write_text(source)
            shutil.copy("webhooks/signing.py", receiver.folder)
            command = [word.format(port=receiver.port) for word in COMMANDS[language]]
            environment = {"PORT": receiver.port, "SIGNING_SECRETS": " ".join(secrets)}
            output = stack.enter_context((receiver.folder / "output").open("w"))
            process = subprocess.Popen(
                children.tied(command, by=signal.SIGTERM),
                cwd=receiver.folder,
                env=environment | stopped_clock(now) | {"PATH": os.environ["PATH"]},
                stdout=output,
                stderr=output,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            wait_until(receiver.listens)
            return receiver

        yield started


def held_port(stack: ExitStack) -> str:
    """Return a port that nobody else is given until the end: who listens there shares it, as servers do by default."""
    holder = stack.enter_context(socket.socket())
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return str(holder.getsockname()[1])


def stopped_clock(now: int | None) -> dict[str, str]:
    """Variables under which a process reads the clock as `now`, for ever; none if that is None.

    The library is Debian's package faketime; its command would be a parent that leaves orphans behind.
    """
    if now is None:
        return {}
    return {
        "LD_PRELOAD": "/usr/$LIB/faketime/libfaketime.so.1",
        "FAKETIME": f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S}",
        "TZ": "UTC",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # waiting goes on as ever
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < deadline, "too late"
        time.sleep(0.01)


def signed(event_id: str, secret: str) -> tuple[bytes, dict[str, str]]:
    body = f'{{"id":"{event_id}","type":"checkout.authorized"}}'.encode()
    return body, {"X-Service-Signature": signing.sign([secret], body, int(time.time()))}


@languages
class TestReceiver:
    def test_is_short(self, language: str) -> None:
        assert 10 < len(BLOCKS[language].splitlines()) <= 30

    def test_comes_to_the_verdict_of_every_vector(self, language: str, start: Start) -> None:
        receivers: dict[tuple[str, ...], Running] = {}
        for vector in vectors.X_SERVICE_SIGNATURE:
            secrets = tuple(vector.secrets)
            if secrets not in receivers:
                receivers[secrets] = start(language, vector.secrets, vector.now)
            wanted = 200 if vector.is_accepted else 400
            assert receivers[secrets].post(vector.body, vector.headers) == wanted, vector.name
        for receiver in receivers.values():  # accepted many times, acted on once
            assert receiver.acts().count(vectors.X_SERVICE_SIGNATURE[0].event_id) <= 1
        assert len(receivers) > 3

    def test_acts_once_on_an_event_that_comes_twice(self, language: str, start: Start) -> None:
        secret = signing.new_secret()
        receiver = start(language, [secret])
        for event_id in ("one", "one", "two", "one", "two"):
            assert receiver.post(*signed(event_id, secret)) == 200
        later = receiver.folder / "later.log"
        wait_until(lambda: later.exists() and len(later.read_text().splitlines()) >= 2)
        assert receiver.acts() == ["one", "two"]
        assert sorted(later.read_text().splitlines()) == ["one", "two"]

    def test_that_cannot_act_is_sent_the_event_again(self, language: str, start: Start) -> None:
        secret = signing.new_secret()
        receiver = start(language, [secret], needs_api=True)
        assert not 200 <= receiver.post(*signed("one", secret)) < 300
        (receiver.folder / "api").touch()
        assert receiver.post(*signed("one", secret)) == 200
        assert receiver.acts() == ["one"]

    def test_answers_before_the_slow_work_ends(self, language: str, start: Start) -> None:
        secret = signing.new_secret()
        receiver = start(language, [secret])
        later = receiver.folder / "later.log"
        os.mkfifo(later)  # whoever writes to it waits for a reader
        assert receiver.post(*signed("one", secret)) == 200
        assert later.read_text() == "one\n"

    def test_refuses_what_is_not_signed_and_acts_not(self, language: str, start: Start) -> None:
        secret = signing.new_secret()
        receiver = start(language, [secret])
        body, headers = signed("one", secret)
        for refused in ((body + b" ", headers), (body, {}), signed("one", signing.new_secret())):
            assert receiver.post(*refused) == 400
        assert receiver.post(*signed("two", secret)) == 200
        assert receiver.acts() == ["two"]
