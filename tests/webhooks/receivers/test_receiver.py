"""The receivers that merchants download run unchanged. Their verdicts, captures and answers must be correct."""

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from portal.developer_docs import downloads
from tests.serving import Reply, serving
from tests.waiting import wait_for
from tests.webhooks import vectors
from tests.webhooks.foreign import go_builds, programs
from tests.webhooks.foreign.programs import Running
from webhooks import receivers, signing

RECEIVERS = sorted(path for path in Path(receivers.__file__).parent.glob("receiver.*"))
languages = pytest.mark.parametrize("receiver", RECEIVERS, ids=lambda path: path.suffix[1:])


class RefusedCapture(NamedTuple):
    """An answer with a status other than 200 to a capture. `wait` is its `Retry-After`."""

    status: int
    code: str
    wait: int = 1


class Bank(NamedTuple):
    """A replacement for the API. It answers captures with each of `answers` in turn, and after that with 200."""

    url: str
    calls: list[str]
    answers: list[RefusedCapture]
    held: list[dict[str, str]]
    changed: list[dict[str, str]]

    def captures(self) -> list[str]:
        return [path for path in self.calls if path.endswith("/capture")]


Start = Callable[..., Running]


@pytest.fixture
def bank() -> Iterator[Bank]:
    bank = Bank("", [], [], [], [])

    def read(path: str) -> Reply:
        if "status=authorized" not in path:
            return json_reply(200, {"data": {"checkouts": bank.changed, "next_cursor": "next"}})
        number = int(path.partition("&cursor=page-")[2] or 0)
        following = f"page-{number + 1}" if bank.held[number + 1 :] else None
        rows = bank.held[number : number + 1]  # one row per page, so that receivers have to follow the cursor
        return json_reply(200, {"data": {"checkouts": rows, "next_cursor": following}})

    def write(path: str) -> Reply:
        if not path.endswith("/capture"):
            return json_reply(200, {"access_token": "good", "expires_in": 3600})
        if bank.answers:
            status, code, wait = bank.answers.pop(0)
            return json_reply(status, {"error": {"code": code}}, {"Retry-After": str(wait)})
        return json_reply(200, {"data": {"status": "captured"}})

    def answer(handler: http.server.BaseHTTPRequestHandler, _: bytes) -> Reply:
        bank.calls.append(handler.path)
        reply = (read if handler.command == "GET" else write)(handler.path)
        is_known = handler.path == "/oauth/token" or handler.headers["Authorization"] == "Bearer good"
        return reply if is_known else reply._replace(status=401)

    with serving(answer) as address:
        bank = bank._replace(url=address)
        yield bank


def json_reply(status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> Reply:
    return Reply(status, json.dumps(body).replace(": ", ":").encode(), headers or {})


@pytest.fixture
def start(tmp_path: Path, bank: Bank) -> Iterator[Start]:
    """Yield a function that starts a receiver with the given signing secrets.

    With `now`, the receiver's clock always shows this Unix time.
    """
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


def held(checkout: str, minute: int, **more: str) -> dict[str, str]:
    """Return a hold as the list of checkouts shows it. The hold ends at this minute of 2026."""
    authorized_at, capture_before = "2026-01-01T00:00:00.000Z", f"2026-01-01T00:0{minute}:00.000Z"
    shown = {"authorized_at": authorized_at, "capture_before": capture_before} | more
    return {"checkout_uuid": checkout} | shown


def test_there_is_one_for_each_language() -> None:
    assert [path.suffix for path in RECEIVERS] == [".go", ".mjs", ".php", ".py", ".rb", ".ts"]


@languages
class TestReceiver:
    def test_is_short(self, receiver: Path) -> None:
        limit = {".go": 282, ".rb": 180}.get(receiver.suffix, 170)
        assert 40 < len(receiver.read_text().splitlines()) <= limit

    @pytest.mark.rule("docs.receivers")
    def test_gives_the_verdict_and_reason_of_every_vector(self, receiver: Path, start: Start) -> None:
        running: dict[tuple[str, ...], Running] = {}
        for vector in vectors.X_SERVICE_SIGNATURE:
            secrets = tuple(vector.secrets)
            if secrets not in running:
                running[secrets] = start(receiver, vector.secrets, vector.now)
            wanted = (200, "ok") if vector.is_accepted else (400, vector.verdict)
            assert running[secrets].post(vector.body, vector.headers) == wanted, vector.name
        assert len(running) > 3

    @pytest.mark.rule("docs.receivers")
    def test_captures_an_event_that_arrives_twice_only_once(
        self, receiver: Path, start: Start, bank: Bank
    ) -> None:
        secret = signing.new_secret()
        running = start(receiver, [secret])
        for event_id in ("one", "one", "two", "one", "two"):
            assert running.post(*signed(event_id, secret)) == (200, "ok")
        assert len(bank.captures()) == 2
        assert bank.calls.count("/oauth/token") == 1
        assert running.paid() == ["order-one", "order-two"]

    def test_accepts_two_deliveries_at_the_same_time(self, receiver: Path, start: Start) -> None:
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
        bank.answers.append(RefusedCapture(503, "service_unavailable", wait=20))
        assert running.post(*signed("one", secret)) == (500, "send it again")
        assert running.paid() == []
        assert running.post(*signed("one", secret)) == (200, "ok")
        assert running.paid() == ["order-one"]

    @pytest.mark.rule("docs.receivers")
    @pytest.mark.long
    def test_asks_again_while_a_capture_is_in_doubt(self, receiver: Path, start: Start, bank: Bank) -> None:
        secret = signing.new_secret()
        running = start(receiver, [secret])
        # After five seconds, the receiver has less time left than its longest call takes.
        bank.answers.extend(
            [RefusedCapture(504, "outcome_unknown", wait=5), RefusedCapture(409, "operation_in_progress")]
        )
        began = time.monotonic()
        assert running.post(*signed("one", secret)) == (200, "ok")
        assert time.monotonic() - began >= 6
        assert (len(bank.captures()), running.paid()) == (3, ["order-one"])

    @pytest.mark.rule("docs.receivers")
    @pytest.mark.long
    def test_catches_up_with_holds_that_no_delivery_reported(
        self, receiver: Path, start: Start, bank: Bank
    ) -> None:
        secret = signing.new_secret()
        running = start(receiver, [secret])
        bank.answers.append(RefusedCapture(504, "outcome_unknown", wait=20))
        assert running.post(*signed("one", secret)).status == 500  # the last attempt of this delivery
        bank.held[:] = [
            held("young", 3, authorized_at="9999-01-01T00:00:00.000Z"),
            held("later", 2),
            held("in-doubt", 1, pending_operation="capture"),
            held("sooner", 0),
        ]
        bank.changed[:] = [
            {"checkout_uuid": "order-one", "status": "captured"},
            {"checkout_uuid": "lapsed", "status": "voided"},
            {"checkout_uuid": "given-back", "status": "refunded"},
        ]
        wait_for(lambda: running.paid() == ["later", "order-one", "sooner"], within=15)
        assert [path for path in bank.captures() if "order-one" not in path][:2] == [
            "/api/merchant/v1/checkouts/sooner/capture",
            "/api/merchant/v1/checkouts/later/capture",
        ], "the one that ends soonest first, though it is on the last page"
        assert not [path for path in bank.captures() if "young" in path or "in-doubt" in path]
        first, *_ = [path for path in bank.calls if "sort=updated_at" in path]
        assert "updated_after=20" in first

    def test_gets_a_new_token_when_the_old_one_is_refused(
        self, receiver: Path, start: Start, bank: Bank
    ) -> None:
        secret = signing.new_secret()
        running = start(receiver, [secret])
        bank.answers.append(RefusedCapture(401, "invalid_token"))
        assert running.post(*signed("one", secret)) == (200, "ok")
        assert bank.calls.count("/oauth/token") == 2

    def test_does_not_fulfil_an_order_after_its_hold_has_ended(
        self, receiver: Path, start: Start, bank: Bank
    ) -> None:
        secret = signing.new_secret()
        running = start(receiver, [secret])
        bank.answers.append(RefusedCapture(409, "not_capturable"))
        assert running.post(*signed("one", secret)) == (200, "ok")
        assert running.post(*signed("two", secret, "checkout.voided")) == (200, "ok")
        assert (len(bank.captures()), running.paid()) == (1, [])

    def test_ignores_and_does_not_log_unsigned_requests(
        self, receiver: Path, start: Start, bank: Bank
    ) -> None:
        secret = signing.new_secret()
        running = start(receiver, [secret])
        body, headers = signed("one", secret)
        unsigned: dict[str, str] = {}
        refused = ((body + b" ", headers), (body, unsigned), signed("one", signing.new_secret()))
        assert [running.post(*delivery).status for delivery in refused] == [400, 400, 400]
        assert (bank.captures(), running.paid()) == ([], [])
        assert "order-one" not in running.output()

    @pytest.mark.rule("docs.receivers")
    @pytest.mark.parametrize(
        "beside", [["{}", ""], ["", "{}"], ["", "{}", "", ""]], ids=["last", "first", "all"]
    )
    def test_does_not_treat_an_empty_part_as_a_secret(
        self, receiver: Path, start: Start, beside: list[str]
    ) -> None:
        secret = signing.new_secret()
        running = start(receiver, [part.format(secret) for part in beside])
        assert running.post(*signed("one", "")) == (400, "no_matching_signature")
        assert running.post(*signed("one", secret)) == (200, "ok")

    @pytest.mark.rule("docs.receivers")
    @pytest.mark.parametrize("value", [None, "", "  "], ids=["unset", "empty", "blank"])
    def test_does_not_start_without_what_it_needs(
        self, receiver: Path, tmp_path: Path, value: str | None
    ) -> None:
        whole = programs.variables("http://127.0.0.1:9", "client_1", "sk_1") | {"SIGNING_SECRETS": "whsec_1"}
        for name in whole:
            given = {key: text for key, text in whole.items() if key != name}
            done = programs.run(receiver, tmp_path, given if value is None else given | {name: value})
            assert done.returncode == 1
            assert f"Set {name}" in done.stderr and len(done.stderr.splitlines()) == 1

    def test_logs_what_it_does(self, receiver: Path, start: Start) -> None:
        secret = signing.new_secret()
        running = start(receiver, [secret])
        running.post(*signed("one", secret))
        lines = running.output().splitlines()
        assert any(f"127.0.0.1:{running.port}" in line for line in lines[:2])
        assert [line.partition("delivery is ")[2] for line in lines if "delivery" in line] == [
            "answered 200 ok"
        ]

    def test_refuses_a_body_that_is_too_large(self, receiver: Path, start: Start) -> None:
        secret = signing.new_secret()
        body = b'{"id": "one", "pad": "' + b"x" * (3 << 20) + b'"}'
        headers = {"X-Service-Signature": signing.sign([secret], body, int(time.time()))}
        assert start(receiver, [secret]).post(body, headers).status in (0, 400)


def test_the_php_receiver_refuses_all_requests_without_a_secret(start: Start, bank: Bank) -> None:
    # PHP's server starts even if settings are missing. Therefore the receiver must refuse each request.
    receiver = next(path for path in RECEIVERS if path.suffix == ".php")
    for secrets in ([], ["", ""]):
        running = start(receiver, secrets)
        assert running.post(*signed("one", "")).status == 500
        assert running.post(*signed("one", signing.new_secret())).status == 500
        assert (bank.captures(), running.paid()) == ([], [])
        assert "Set SIGNING_SECRETS" in running.output()


@pytest.mark.long
@pytest.mark.parametrize("stem", ["quickstart", "receiver"])
def test_the_programs_in_go_have_no_finding_of_go_vet(stem: str) -> None:
    program = downloads.FILES[f"{stem}.go"]
    go_builds.build(program)  # this creates the folder with Go's cache
    assert go_builds.output(program.parent, "go", "vet", program.name) == ""


@pytest.mark.rule("docs.quick_start")
@pytest.mark.parametrize("suffix", downloads.LANGUAGES)
def test_a_quick_start_names_what_it_lacks(suffix: str, tmp_path: Path) -> None:
    whole = programs.variables("http://127.0.0.1:9", "client_1", "sk_1")
    for name in whole:
        done = programs.run(downloads.FILES[f"quickstart{suffix}"], tmp_path, whole | {name: ""})
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"Set {name} (see Quick start in the documentation).\n"
