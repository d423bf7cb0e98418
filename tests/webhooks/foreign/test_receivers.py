"""The receivers that merchants download, run for real: the vectors' verdicts, one capture, and what they answer."""

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.webhooks import vectors
from tests.webhooks.foreign import programs
from tests.webhooks.foreign.programs import Running
from webhooks import receivers, signing

RECEIVERS = sorted(path for path in Path(receivers.__file__).parent.glob("receiver.*"))
languages = pytest.mark.parametrize("receiver", RECEIVERS, ids=lambda path: path.suffix[1:])


class Bank(NamedTuple):
    """A stand-in for the API: captures are answered with the statuses in turn, then with 200 for ever."""

    url: str
    calls: list[str]
    answers: list[tuple[int, str]]

    def captures(self) -> list[str]:
        return [path for path in self.calls if path.endswith("/capture")]


Start = Callable[..., Running]


@pytest.fixture
def bank() -> Iterator[Bank]:
    calls: list[str] = []
    answers: list[tuple[int, str]] = []

    class Api(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            calls.append(self.path)
            is_capture = self.path.endswith("/capture")
            authorized = self.headers["Authorization"] == "Bearer good"
            status, code = answers.pop(0) if is_capture and answers else (200, "")
            body: dict[str, Any] = {"access_token": "good", "expires_in": 3600}
            if is_capture:
                body = {"error": {"code": code}} if code else {"data": {"status": "captured"}}
            content = json.dumps(body).replace(": ", ":").encode()
            self.send_response(status if authorized or not is_capture else 401)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Tests look at the calls instead."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield Bank(f"http://127.0.0.1:{server.server_port}", calls, answers)
        server.shutdown()


@pytest.fixture
def start(tmp_path: Path, bank: Bank) -> Iterator[Start]:
    """Start a receiver with these signing secrets; with `now` its clock stands still at that unix time."""
    with ExitStack() as stack:

        def started(receiver: Path, secrets: list[str], now: int | None = None) -> Running:
            folder = tmp_path / str(len(list(tmp_path.iterdir())))
            folder.mkdir()
            given = programs.variables(bank.url, "client_1", "sk_1") | {"SIGNING_SECRETS": " ".join(secrets)}
            return programs.start(receiver, folder, given | programs.stopped_clock(now), stack)

        yield started


def signed(event_id: str, secret: str, kind: str = "checkout.authorized") -> tuple[bytes, dict[str, str]]:
    body = json.dumps({"id": event_id, "type": kind, "data": {"checkout_uuid": f"order-{event_id}"}}).encode()
    return body, {"X-Service-Signature": signing.sign([secret], body, int(time.time()))}


def test_there_is_one_for_each_language() -> None:
    assert [path.suffix for path in RECEIVERS] == [".mjs", ".php", ".py", ".ts"]


@languages
class TestReceiver:
    def test_is_short(self, receiver: Path) -> None:
        assert 40 < len(receiver.read_text().splitlines()) <= 100

    @pytest.mark.rule("docs.receivers")
    def test_comes_to_the_verdict_of_every_vector_and_says_the_reason(
        self, receiver: Path, start: Start
    ) -> None:
        running: dict[tuple[str, ...], Running] = {}
        for vector in vectors.X_SERVICE_SIGNATURE:
            secrets = tuple(vector.secrets)
            if secrets not in running:
                running[secrets] = start(receiver, vector.secrets, vector.now)
            wanted = (200, "ok") if vector.is_accepted else (400, vector.verdict)
            assert running[secrets].post(vector.body, vector.headers) == wanted, vector.name
        assert len(running) > 3

    @pytest.mark.rule("docs.receivers")
    def test_captures_once_what_comes_twice(self, receiver: Path, start: Start, bank: Bank) -> None:
        secret = signing.new_secret()
        running = start(receiver, [secret])
        for event_id in ("one", "one", "two", "one", "two"):
            assert running.post(*signed(event_id, secret)) == (200, "ok")
        assert len(bank.captures()) == 2
        assert bank.calls.count("/oauth/token") == 1
        assert running.paid() == ["order-one", "order-two"]

    def test_takes_two_deliveries_at_once(self, receiver: Path, start: Start) -> None:
        secret, answers = signing.new_secret(), []
        running = start(receiver, [secret])
        together = [
            threading.Thread(target=lambda: answers.append(running.post(*signed("one", secret)).status))
            for _ in range(2)
        ]
        for thread in together:
            thread.start()
        for thread in together:
            thread.join()
        assert answers == [200, 200]
        assert running.paid() == ["order-one"]

    @pytest.mark.rule("docs.receivers")
    def test_that_cannot_capture_is_sent_the_event_again(
        self, receiver: Path, start: Start, bank: Bank
    ) -> None:
        secret = signing.new_secret()
        running = start(receiver, [secret])
        bank.answers.extend([(504, "outcome_unknown"), (409, "operation_in_progress")])
        assert running.post(*signed("one", secret)) == (500, "send it again")
        assert running.paid() == []
        bank.answers.extend([(503, "service_unavailable")])
        assert running.post(*signed("one", secret)) == (200, "ok")
        assert running.paid() == ["order-one"]

    def test_gets_a_new_token_when_the_old_one_is_refused(
        self, receiver: Path, start: Start, bank: Bank
    ) -> None:
        secret = signing.new_secret()
        running = start(receiver, [secret])
        bank.answers.extend([(401, "invalid_token")])
        assert running.post(*signed("one", secret)) == (200, "ok")
        assert bank.calls.count("/oauth/token") == 2

    def test_fulfils_nothing_when_the_hold_is_over(self, receiver: Path, start: Start, bank: Bank) -> None:
        secret = signing.new_secret()
        running = start(receiver, [secret])
        bank.answers.extend([(409, "not_capturable")])
        assert running.post(*signed("one", secret)) == (200, "ok")
        assert running.post(*signed("two", secret, "checkout.voided")) == (200, "ok")
        assert (len(bank.captures()), running.paid()) == (1, [])

    def test_neither_acts_on_nor_tells_what_is_not_signed(
        self, receiver: Path, start: Start, bank: Bank
    ) -> None:
        secret = signing.new_secret()
        running = start(receiver, [secret])
        body, headers = signed("one", secret)
        unsigned: dict[str, str] = {}
        refused = ((body + b" ", headers), (body, unsigned), signed("one", signing.new_secret()))
        assert [running.post(*delivery).status for delivery in refused] == [400, 400, 400]
        assert (bank.calls, running.paid()) == ([], [])
        assert "order-one" not in running.output()

    def test_takes_no_body_without_end(self, receiver: Path, start: Start) -> None:
        secret = signing.new_secret()
        body = b'{"id": "one", "pad": "' + b"x" * (3 << 20) + b'"}'
        headers = {"X-Service-Signature": signing.sign([secret], body, int(time.time()))}
        assert start(receiver, [secret]).post(body, headers).status in (0, 400)
