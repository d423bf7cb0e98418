"""Reused connections: how long they are kept, and what happens to bytes that follow an answer."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhooks.receivers.hostile import CHUNKED, RESET
from tests.webhooks.receivers.receiving import OK, TLS, Behaviour, Names, answering, receiving
from webhooks import connections, transport

NEXT = b"HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n"
SMUGGLED = b"HTTP/1.1 201 Smuggled\r\nContent-Length: 0\r\n\r\n"
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n"
HEAD, THANKS = OK[:-6], OK[-6:]


def posts(behaviour: Behaviour, *, count: int = 2, settles: bool = False) -> tuple[list[str], int, int]:
    """Send `count` POSTs in turn. Return their results, the number of connections, and the number of requests.

    With `settles`, wait after each POST until the receiver has sent all its bytes.
    """

    async def scenario() -> tuple[list[str], int, int]:
        async with receiving(behaviour) as receiver:
            async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                url, answers = f"http://127.0.0.1:{receiver.port}/", []
                for _ in range(count):
                    answer = await transport.post(pool, url, {}, b"{}", deadline_seconds=3)
                    answers.append(str(answer.http_status or answer.error_message))
                    while settles and receiver.busy:
                        await asyncio.sleep(0.01)
                    # Let the event loop read the bytes that have arrived.
                    await asyncio.sleep(0.01 if settles else 0)
            return answers, receiver.connections, len(receiver.requests)

    return transport.run(scenario())


def first(behaviour: Behaviour, next_behaviour: Behaviour) -> Behaviour:
    """Apply `behaviour` to the first request, and `next_behaviour` to all others."""
    requests: list[None] = []

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(None)
        await (behaviour if len(requests) == 1 else next_behaviour)(reader, writer)

    return behave


def hanging_up_on_second(*packets: bytes, seconds: float = 0.0, with_reset: bool = False) -> Behaviour:
    """Answer all requests except the second.

    For the second request, wait for `seconds`, send `packets`, and then close or reset the connection.
    """
    requests: list[None] = []

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(None)
        if len(requests) != 2:
            await answering(OK)(reader, writer)
            return
        await asyncio.sleep(seconds)
        await answering(*packets)(reader, writer)
        await asyncio.sleep(0.01)
        if with_reset:
            writer.get_extra_info("socket").setsockopt(*RESET)
        writer.transport.abort() if with_reset else writer.close()

    return behave


class TestKeeping:
    @pytest.fixture(autouse=True)
    def _patient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Increase STALE_SECONDS, so that a slow machine does not change the results."""
        monkeypatch.setattr(connections, "STALE_SECONDS", 60.0)

    def test_reuses_the_connection_for_the_next_delivery(self) -> None:
        assert posts(answering(OK)) == (["200", "200"], 1, 2)

    @pytest.mark.parametrize("with_reset", [False, True], ids=["closed", "reset"])
    def test_replaces_a_dropped_connection_within_the_attempt(self, with_reset: bool) -> None:
        assert posts(hanging_up_on_second(with_reset=with_reset)) == (["200", "200"], 2, 3)

    def test_sends_a_request_twice_at_most_if_the_receiver_hangs_up(self) -> None:
        """Check that a request is sent at most twice, even if the sender keeps several connections to the receiver.

        More repetitions would do harm, because a receiver might process each request that it gets.
        """

        async def scenario() -> tuple[str | None, int]:
            async with receiving(late) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    await asyncio.gather(*(transport.post(pool, url, {}, b"{}") for _ in range(5)))
                    receiver.behaviour, seen = hanging_up, len(receiver.requests)
                    answer = await transport.post(pool, url, {}, b"{}")
                    return answer.error_message, len(receiver.requests) - seen

        async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.05)
            await answering(OK)(reader, writer)

        async def hanging_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.abort()

        assert transport.run(scenario()) == ("the connection was closed before an answer", 2)

    def test_replaces_a_dropped_connection_with_a_new_one(self) -> None:
        """Check that the sender does not try another kept connection. A receiver that restarts drops them all."""
        seen: set[asyncio.StreamWriter] = set()

        async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if writer in seen:
                writer.transport.abort()
                return
            seen.add(writer)
            await asyncio.sleep(0.05)
            await answering(OK)(reader, writer)

        async def scenario() -> tuple[int | None, int]:
            async with receiving(once) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    await asyncio.gather(*(transport.post(pool, url, {}, b"{}") for _ in range(5)))
                    answer = await transport.post(pool, url, {}, b"{}")
                    return answer.http_status, receiver.connections

        assert transport.run(scenario()) == (200, 6)

    def test_an_unsolicited_408_during_a_request_does_not_count_as_its_response(self) -> None:
        assert posts(first(answering(OK), first(answering(TOO_LATE), answering(OK)))) == (
            ["200", "200"],
            2,
            3,
        )
        # A 408 on a new connection answers the request, and so does a 408 that does not close the connection.
        assert posts(answering(TOO_LATE), count=1) == (["408"], 1, 1)
        waiting = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
        assert posts(first(answering(OK), answering(waiting))) == (["200", "408"], 1, 2)

    def test_sends_a_request_once_if_the_receiver_hangs_up_late(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        closed = "the connection was closed before an answer"
        assert posts(hanging_up_on_second(b"HTTP/1.1 ")) == (["200", closed], 1, 2)
        monkeypatch.setattr(connections, "STALE_SECONDS", 0.05)
        assert posts(hanging_up_on_second(seconds=0.1)) == (["200", closed], 1, 2)

    def test_a_new_connection_that_is_closed_is_not_tried_again(self) -> None:
        async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.abort()

        assert posts(hang_up, count=1) == (["the connection was closed before an answer"], 1, 1)

    def test_ends_when_a_body_is_left_unread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transport, "BODY_SECONDS", 0.05)
        slow = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf")
        assert posts(slow) == (["200", "200"], 2, 2)

    def test_ends_when_the_answer_comes_before_the_request_has_gone(self) -> None:
        """Check that the connection is not reused.

        The first request has unsent bytes, and the next request would be written after them.
        """

        async def answer_unread(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(OK)
            await asyncio.sleep(60)

        async def scenario() -> tuple[list[int | None], int]:
            async with receiving(answer_unread, reads=False) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    body = b"a" * 20_000_000
                    answers = [
                        await transport.post(pool, url, {}, body, deadline_seconds=2) for _ in range(2)
                    ]
            return [answer.http_status for answer in answers], receiver.connections

        assert transport.run(scenario()) == ([200, 200], 2)


class TestPoison:
    @pytest.mark.parametrize(
        "packets",
        [
            [OK + SMUGGLED],
            [OK + SMUGGLED[:20]],
            [OK + SMUGGLED[:1]],
            [HEAD, THANKS + SMUGGLED],
            [CHUNKED, b"6\r\nthanks\r\n0\r\n\r\n" + SMUGGLED],
            [OK, SMUGGLED],
            [OK, SMUGGLED * 3],
            [OK, SMUGGLED[:20]],
            [OK, b"\r\n"],
            [OK, b"HTTP/1.1 100 Continue\r\n\r\n"],
            [b"HTTP/1.1 204 No Content\r\n\r\n" + SMUGGLED],
            [b"HTTP/1.1 204 No Content\r\n\r\n", SMUGGLED],
            [HEAD, THANKS + b"nonsense\r\n\r\n"],
            [b"HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n" + SMUGGLED],
        ],
        ids=[
            *(
                "with the answer",
                "a part with the answer",
                "a byte with the answer",
                "with the body",
                "with the last chunk",
                "later",
                "thrice",
                "in part",
            ),
            *("a blank line", "an interim answer", "with a 204", "after a 204", "nonsense", "upgrade"),
        ],
    )
    def test_never_counts_as_the_next_response(self, packets: Sequence[bytes]) -> None:
        answers, used, _ = posts(first(answering(*packets), answering(NEXT)), settles=True)
        assert answers[0] in ("200", "204") and answers[1] == "503"
        assert used == 2

    def test_an_unsolicited_408_does_not_count_as_a_response(self) -> None:
        answers, _, _ = posts(first(answering(OK, TOO_LATE), answering(OK)), settles=True)
        assert answers == ["200", "200"]


class Wire(asyncio.Transport):
    """A transport without a network."""

    def __init__(self) -> None:
        super().__init__()
        self.is_aborted = False
        self.unsent = 0

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.is_aborted

    def close(self) -> None:
        pass

    def abort(self) -> None:
        self.is_aborted = True


class Exchange(NamedTuple):
    """A response's status and body. `is_aborted` is true if its packets caused the connection to be aborted."""

    status: int
    body: bytes
    is_aborted: bool


async def read(packets: Sequence[bytes], *, loses: bool = False) -> Exchange:
    """Pass the packets to a connection, and then read the response.

    With `loses`, the connection is lost before the response is read.
    """
    opened: set[connections.Connection] = set()
    connection, wire = connections.Connection(asyncio.get_running_loop(), opened, 1), Wire()
    connection.connection_made(wire)
    assert opened == {connection}
    connection.set_response_params(read_until_eof=True, auto_decompress=False)
    for packet in filter(None, packets):
        connection.data_received(packet)
    is_aborted = wire.is_aborted
    if loses:
        connection.connection_lost(None)
        assert not opened
    while True:
        head, body = await connection.read()
        if head.code >= 200:
            assert body.is_eof()  # a reader must not wait for more bytes
            return Exchange(head.code, body.read_nowait(), is_aborted)


class TestConnection:
    @given(cuts=st.lists(st.integers(0, 70)), tail=st.sampled_from([b"zz\r\n\r\n", b"\x00", SMUGGLED]))
    def test_keeps_the_head_however_the_bytes_are_cut(self, cuts: list[int], tail: bytes) -> None:
        message = b"HTTP/1.1 100 Go\r\n\r\n" + CHUNKED + tail
        places = [0, *sorted(cuts), len(message)]
        packets = [message[start:end] for start, end in itertools.pairwise(places)]
        assert transport.run(read(packets)) == (200, b"", True)

    def test_accepts_no_other_request_while_one_is_partly_unsent(self) -> None:
        async def scenario() -> list[bool]:
            connection, wire = connections.Connection(asyncio.get_running_loop(), set(), 1), Wire()
            connection.connection_made(wire)
            closes = [connection.should_close]
            wire.unsent = 1
            return [*closes, connection.should_close]

        assert transport.run(scenario()) == [False, True]

    def test_stores_the_received_part_of_a_body_that_is_cut(self) -> None:
        half = HEAD + b"half"
        assert transport.run(read([half], loses=True)) == (200, b"half", False)

    def test_stores_the_received_part_of_a_broken_body(self) -> None:
        broken = CHUNKED + b"4\r\nhalf\r\nzz\r\n"
        assert transport.run(read([broken])) == (200, b"half", True)

    @pytest.mark.rule("delivery.bounded")
    def test_reads_no_more_than_16_kib_of_what_follows_the_head(self) -> None:
        packets = [CHUNKED, *[b"1;" + b"a" * 8190] * 2, b"aa"]
        assert transport.run(read([*packets, b"a" * 16])) == (200, b"", True)


@pytest.mark.rule("target.each_connection")
class TestAge:
    def test_an_old_connection_is_not_used_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert posts(answering(OK), count=3)[1] == 1
        monkeypatch.setattr(connections, "KEPT_SECONDS", 0.0)
        assert posts(answering(OK), count=3)[1] == 3

    def test_ends_even_in_constant_use_and_the_address_is_checked_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Check that a connection ends even if it is used once a second. In this test, time runs forty times as fast.

        The new connection is refused, because the name now resolves to a forbidden address.
        """
        monkeypatch.setattr(connections, "KEPT_SECONDS", connections.KEPT_SECONDS / 40)
        names = Names(["127.0.0.1"], ["10.9.8.7"])

        async def scenario() -> tuple[list[str], int, float]:
            started, answers = time.monotonic(), ["200"]
            async with receiving(answering(OK)) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS, names=names) as pool:
                    while answers[-1] == "200":
                        await asyncio.sleep(1 / 40)
                        answer = await transport.post(
                            pool, f"http://shop.example.com:{receiver.port}/", {}, b"{}"
                        )
                        answers.append(str(answer.http_status or answer.error_message))
                return answers, receiver.connections, time.monotonic() - started

        answers, used, seconds = transport.run(asyncio.wait_for(scenario(), 10))
        assert (answers[-1], used, names.asked) == ("address not allowed", 1, 2)
        assert len(answers) > 10 and seconds >= connections.KEPT_SECONDS

    def test_is_limited_to_less_than_sixty_seconds(self) -> None:
        assert connections.KEPT_SECONDS < 60
