"""If receivers hang, send slowly, flood, hang up or send invalid data, each attempt ends with a reason."""

import asyncio
import contextlib
import json
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.webhooks.receivers import growth, hostile
from tests.webhooks.receivers.hostile import Hostility
from tests.webhooks.receivers.receiving import (
    BODY,
    HEADERS,
    OK,
    TLS,
    Names,
    answering,
    certificate,
    post,
    posted,
    receiving,
)
from webhooks import targets, transport

DEADLINE = 0.3
TIMED_OUT = (None, "timeout after 0.3 s")


def by_name(hostility: Hostility) -> str:
    return hostility.name


def verdict(answer: transport.Answer) -> tuple[int | None, str | None]:
    return answer.http_status, answer.error_message


@contextlib.contextmanager
def full_queue() -> Iterator[int]:
    """Yield a port whose backlog is full, so that it does not accept a new connection."""
    with contextlib.ExitStack() as sockets:
        port = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0)).getsockname()[1]
        for _ in range(3):
            filler = sockets.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield port


async def post_unaccepted(**settings: float) -> transport.Answer:
    with full_queue() as port:
        async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
            return await transport.post(pool, f"http://127.0.0.1:{port}/", HEADERS, BODY, **settings)


class TestSlow:
    @pytest.mark.rule("delivery.deadline")
    def test_ends_at_the_deadline_and_its_connection_is_closed(self) -> None:
        async def attack(hostility: Hostility) -> tuple[str, transport.Answer, int]:
            async with receiving(hostility.behaviour, reads=hostility.reads) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    answer = await transport.post(pool, url, HEADERS, BODY, deadline_seconds=DEADLINE)
                    # The connection must end even though the pool stays open.
                    while not receiver.left:
                        await asyncio.sleep(0.01)
                return hostility.name, answer, receiver.connections

        async def scenario() -> list[tuple[str, transport.Answer, int]]:
            return await asyncio.gather(*map(attack, hostile.slow(pause=0.02)))

        ended = transport.run(asyncio.wait_for(scenario(), 30))
        assert len(ended) >= 10
        for name, answer, connections in ended:
            assert (name, *verdict(answer), connections) == (name, *TIMED_OUT, 1)
            assert answer.duration_ms >= 290, name

    def test_a_connection_that_is_never_accepted_ends_at_the_deadline(self) -> None:
        assert verdict(transport.run(post_unaccepted(deadline_seconds=DEADLINE))) == TIMED_OUT

    def test_a_body_is_read_at_most_until_the_deadline(self) -> None:
        answer, _ = posted(hostile.forever(b"a", start=hostile.LONG, pause=0.02), deadline_seconds=DEADLINE)
        assert verdict(answer) == (200, None)
        assert 290 <= answer.duration_ms < 1500

    def test_a_body_is_read_at_most_for_its_own_time_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transport, "BODY_SECONDS", 0.2)
        answer, _ = posted(hostile.forever(b"a", start=hostile.LONG, pause=0.02))
        assert verdict(answer) == (200, None) and answer.excerpt.startswith("aa")
        assert 190 <= answer.duration_ms < 1500

    def test_name_servers_that_hang_have_three_seconds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert targets.RESOLVE_SECONDS == 3.0
        monkeypatch.setattr(targets, "RESOLVE_SECONDS", 0.1)

        async def scenario() -> transport.Answer:
            async with transport.open_pool(allow_loopback=True, tls=TLS, names=Names(None)) as pool:
                return await transport.post(pool, "https://shop.example.com/", HEADERS, BODY)

        assert verdict(transport.run(scenario())) == (None, "the host name could not be resolved")


class TestHostile:
    @pytest.mark.parametrize("hostility", hostile.all_but_slow(), ids=by_name)
    def test_ends_with_a_readable_verdict(
        self, hostility: Hostility, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transport, "BODY_SECONDS", 0.2)
        answer, receiver = posted(hostility.behaviour, reads=hostility.reads)
        assert verdict(answer) == (hostility.http_status, hostility.error_message)
        assert receiver.connections == 1
        words = answer.excerpt.replace("\n", "").replace("\t", "")
        assert words.isprintable() and len(answer.excerpt.encode()) <= 1024

    @pytest.mark.rule("delivery.bounded")
    def test_a_flood_is_not_read(self) -> None:
        sent = 0

        async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            writer.write(hostile.LONG)
            while True:
                writer.write(b"a" * 65536)
                await writer.drain()
                sent += 65536

        answer, _ = posted(flood)
        assert (answer.http_status, answer.excerpt) == (200, "a" * 1024)
        assert sent < 20_000_000

    @pytest.mark.rule("delivery.bounded")
    @pytest.mark.parametrize(
        ("length", "said"), [(16 * 1024, (200, None)), (16 * 1024 + 1, (None, hostile.TOO_LONG))]
    )
    def test_head_and_body_share_one_size_limit(
        self, length: int, said: tuple[int | None, str | None]
    ) -> None:
        head = hostile.RECEIVED + b"Content-Length: 6\r\nX-A: "
        answer, _ = posted(answering(head.ljust(length - 4, b"a") + b"\r\n\r\nthanks"))
        assert verdict(answer) == said and not answer.excerpt

    def test_a_cut_body_is_kept_as_far_as_it_came(self) -> None:
        cut = hostile.closing(b"HTTP/1.1 500 No\r\nContent-Length: 99\r\n\r\nout of ord")
        answer, _ = posted(cut)
        assert (answer.http_status, answer.excerpt) == (500, "out of ord")

    @pytest.mark.rule("delivery.bounded")
    def test_nothing_is_decompressed(self) -> None:
        answer, _ = posted(hostile.bomb())
        assert answer.http_status == 200 and "aaa" not in answer.excerpt
        assert "\ufffd" in answer.excerpt  # the compressed bytes are not valid text


class TestMemory:
    @pytest.mark.parametrize("scheme", ["http", "https"])
    def test_grows_by_no_more_than_twenty_megabytes(self, scheme: str, tmp_path: Path) -> None:
        """Measure a separate process, which makes ten simultaneous POSTs to each receiver that floods it."""
        greedy = [Hostility("warm-up", answering(OK), 200, None), *hostile.greedy()]
        secured, _ = certificate(tmp_path)
        tls = secured if scheme == "https" else None

        async def scenario() -> list[int]:
            async with contextlib.AsyncExitStack() as stack:
                receivers = [
                    await stack.enter_async_context(receiving(each.behaviour, tls)) for each in greedy
                ]
                urls = [f"{scheme}://shop.example.com:{receiver.port}/" for receiver in receivers]
                program = [sys.executable, "-m", growth.__name__, str(tmp_path / "pair.pem"), *urls]
                sender = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
                output, _ = await sender.communicate()
                assert all(receiver.requests for receiver in receivers)
            return list(json.loads(output))

        grown = transport.run(scenario())
        assert len(grown) == len(greedy)
        too_much = {each.name: kib for each, kib in zip(greedy, grown, strict=True) if kib > 20 * 1024}
        assert too_much == {}


@pytest.mark.rule("delivery.deadline")
@pytest.mark.long
class TestAtFullLength:
    def test_fifteen_seconds_are_fifteen_seconds(self) -> None:
        """Check all behaviours at once, with the deadline of production. Slow receivers send once a second."""

        async def attack(hostility: Hostility) -> tuple[Hostility, transport.Answer, float]:
            async with receiving(hostility.behaviour, reads=hostility.reads) as receiver:
                started = time.monotonic()
                answer = await post(receiver, deadline_seconds=transport.DEADLINE_SECONDS)
                return hostility, answer, time.monotonic() - started

        async def unaccepted() -> tuple[Hostility, transport.Answer, float]:
            started = time.monotonic()
            answer = await post_unaccepted()
            name = Hostility("never accepted", hostile.closing(), None, hostile.TIMEOUT)
            return name, answer, time.monotonic() - started

        async def scenario() -> list[tuple[Hostility, transport.Answer, float]]:
            slow = [attack(hostility) for hostility in hostile.slow(pause=1.0)]
            return await asyncio.gather(*slow, *map(attack, hostile.all_but_slow()), unaccepted())

        ended = transport.run(scenario())
        assert [hostility.name for hostility, _, seconds in ended if seconds > 15.3] == []
        for hostility, answer, _ in ended:
            expected = hostility.error_message
            if expected == hostile.TIMEOUT:
                expected = "timeout after 15 s"
            assert verdict(answer) == (hostility.http_status, expected), hostility.name
        assert sum(answer.error_message == "timeout after 15 s" for _, answer, _ in ended) >= 10
