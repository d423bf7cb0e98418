import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp.resolver
import pytest

from checkout import captures
from checkout.models import Checkout
from config.lib import deadline
from config.lib.deadline import Deadline
from config.lib.web import http
from payments.provider import Outcome
from payments.providers.sandbox import client
from tests.bank import http_client
from tests.conftest import Api
from tests.factories import CAUSE
from tests.hosted_page.browsers import Payer, words
from tests.hosted_page.sandbox import calls
from tests.refusals import nothing_moves, refused

ANSWER = b"HTTP/1.1 %s\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone"
NO_BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\ndone"
Peer = Callable[[socket.socket], object]


@contextmanager
def peer(act: Peer) -> Iterator[tuple[str, list[bytes]]]:
    """Run a server on this machine that accepts one connection, reads the request and then calls `act`.

    Yield the server's URL, and a list of the bytes that the server has read.
    """
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                heard.append(connection.recv(65_536))
                act(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", heard
        thread.join(timeout=5)


def nobody() -> str:
    """Return a URL with a port of this machine on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def says(raw: bytes) -> Peer:
    return lambda connection: connection.sendall(raw)


def is_silent(connection: socket.socket) -> None:
    """Send no answer until the caller closes the connection."""
    connection.settimeout(3)
    connection.recv(1)


def drips(connection: socket.socket) -> None:
    """Send an answer byte by byte, and never complete it."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")
    for _ in range(98):
        try:
            connection.sendall(b".")
        except OSError:
            return
        time.sleep(0.05)


class TestPost:
    def test_sends_it_and_returns_status_and_body(self) -> None:
        with peer(says(ANSWER % b"200 OK")) as (url, heard):
            answer = http.post(f"{url}/x", b"body", {"X-Name": "value"}, seconds=5)
        assert (answer.status, answer.body, answer.is_success) == (200, b"done", True)
        assert heard[0].startswith(b"POST /x HTTP/1.1") and b"X-Name: value" in heard[0]

    @pytest.mark.parametrize(
        ("status", "is_success"), [(b"201 X", True), (b"302 X", False), (b"404 X", False), (b"503 X", False)]
    )
    def test_follows_no_redirect_and_judges_by_the_status(self, status: bytes, is_success: bool) -> None:
        raw = ANSWER % (status + b"\r\nLocation: http://127.0.0.1:1/")
        with peer(says(raw)) as (url, _):
            answer = http.post(url, b"", {}, seconds=5)
        assert (answer.status, answer.is_success) == (int(status[:3]), is_success)

    @pytest.mark.parametrize(
        "act",
        [says(b""), says(b"hello?\r\n\r\n"), says(NO_BODY)],
        ids=["closes", "speaks no HTTP", "stops half-way"],
    )
    def test_a_broken_response_counts_as_no_answer(self, act: Peer) -> None:
        with peer(act) as (url, _), pytest.raises(http.NoAnswer):
            http.post(url, b"", {}, seconds=5)

    @pytest.mark.parametrize("act", [is_silent, drips])
    def test_ends_in_time_whatever_the_peer_does(self, act: Peer) -> None:
        with peer(act) as (url, _):
            began = time.monotonic()
            with pytest.raises(http.NoAnswer, match="Timeout"):
                http.post(url, b"", {}, seconds=0.2)
            assert time.monotonic() - began < 4.5, "the peer would be at it for longer"

    @pytest.mark.parametrize("seconds", [0, -1.5])
    def test_sends_nothing_when_no_time_is_left(self, seconds: float) -> None:
        with peer(says(ANSWER % b"200 OK")) as (url, heard):
            with pytest.raises(http.NoAnswer):
                http.post(url, b"late", {}, seconds=seconds)
            assert heard == [] and http.post(url, b"in time", {}, seconds=5).is_success
        assert len(heard) == 1

    def test_of_two_threads_at_the_same_time_both_get_their_response(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If two threads send their first request at the same time, both get an answer.

        When aiohttp is used for the first time, it creates state that all event loops share. In this test, the creation
        takes half a second, as on a busy machine.
        """
        shared = aiohttp.resolver._DNSResolverManager
        make = shared._init

        def make_slowly(own: Any) -> None:
            time.sleep(0.5)
            make(own)

        monkeypatch.setattr(shared, "_instance", None)
        monkeypatch.setattr(shared, "_init", make_slowly)
        with peer(says(ANSWER % b"200 OK")) as (one, _), peer(says(ANSWER % b"200 OK")) as (other, _):
            with ThreadPoolExecutor(2) as pool:
                answers = list(pool.map(lambda url: http.post(url, b"", {}, seconds=5), [one, other]))
        assert [answer.status for answer in answers] == [200, 200]

    def test_without_a_listener_raises_no_answer(self) -> None:
        with pytest.raises(http.NoAnswer):
            http.post(nobody(), b"", {}, seconds=5)


@pytest.mark.django_db
class TestAnUnreachableBank:
    @pytest.fixture(autouse=True)
    def gone(self) -> Iterator[pytest.MonkeyPatch]:
        with pytest.MonkeyPatch.context() as patch:
            http_client.connect(nobody(), patch.setattr)
            yield patch

    def test_is_shown_to_the_payer_as_slow_until_it_is_back(
        self, unpaid: Checkout, gone: pytest.MonkeyPatch
    ) -> None:
        lea = Payer(unpaid)
        lea.sign_in()
        lea.post("/split", split="all")
        with nothing_moves():
            page = lea.get("/card")
        assert page.status_code == 503 and "The bank is slow right now" in words(page)
        gone.undo()
        assert lea.get("/card").status_code == 302

    def test_is_a_503_in_the_helper_api(self, api: Api, unpaid: Checkout) -> None:
        with nothing_moves():
            refused(calls.post(api, unpaid, "pay", {}), 503, "service_unavailable")


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list whose only element is the time. A test can change it."""
    now = [100.0]
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


class TestDeadline:
    def test_shrinks_over_time_and_never_falls_below_zero(self, moment: list[float]) -> None:
        until = Deadline.after(8)
        assert (until.remaining(), until.remaining(3)) == (8, 3)
        moment[0] += 6
        assert (until.remaining(), until.remaining(3), until.sooner(1.5).remaining()) == (2, 2, 0.5)
        moment[0] += 6
        assert (until.remaining(), until.remaining(3), until.sooner(1.5).remaining()) == (0, 0, 0)

    @pytest.mark.rule("capture.eight_seconds")
    @pytest.mark.django_db
    @pytest.mark.parametrize("lock_seconds", [0.0, 2.9, 4.5, 7.0])
    def test_of_a_capture_bounds_all_its_waits(
        self, held: Checkout, moment: list[float], monkeypatch: pytest.MonkeyPatch, lock_seconds: float
    ) -> None:
        asked: list[str] = []
        begin = captures._begin_capture

        def wait_for_the_lock(*given: Any) -> Any:
            moment[0] += lock_seconds
            return begin(*given)

        def hang(verb: str, *, patience: float, **_: Any) -> Outcome:
            asked.append(verb)
            moment[0] += patience
            raise http.NoAnswer

        monkeypatch.setattr(captures, "_begin_capture", wait_for_the_lock)
        monkeypatch.setattr(client, "call_for_outcome", hang)
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        spent = moment[0] - 100
        kept = captures.CAPTURE_SECONDS - captures.RECORD_SECONDS
        assert spent == pytest.approx(max(kept, lock_seconds)), "all the time there is, and no more"
        assert asked == ["capture", "look_up"][: 2 if lock_seconds < 1.8 else lock_seconds < kept]
