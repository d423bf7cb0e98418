"""Connections to receivers: which targets and time limits they have, how they are reused, and how they end."""

import asyncio
import gc
import resource
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.webhooks.receivers.hostile import closing, forever, keeping_silent
from tests.webhooks.receivers.receiving import (
    OK,
    TLS,
    Behaviour,
    Names,
    Receiver,
    answering,
    certificate,
    free_port,
    receiving,
)
from webhooks import connections, targets, transport

CLOSED = "the connection was closed before an answer"
Returned = TypeVar("Returned")


def run(scenario: Coroutine[Any, Any, Returned]) -> Returned:
    return transport.run(asyncio.wait_for(scenario, 10))


async def is_left(receiver: Receiver, count: int = 1) -> bool:
    """Wait until `count` connections have ended. Fail after 2 s.

    A connection that ends only because of its deadline takes longer.
    """
    async with asyncio.timeout(2):
        while receiver.left < count:
            await asyncio.sleep(0.005)
    return receiver.left == count


async def verdict(pool: transport.Pool, url: str, *, deadline_seconds: float = 5) -> str:
    answer = await transport.post(pool, url, {}, b"{}", deadline_seconds=deadline_seconds)
    return str(answer.http_status or answer.error_message)


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """Apply each behaviour to one request, in this order."""
    left = iter(behaviours)

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next(left)(reader, writer)

    return behave


def late(seconds: float) -> Behaviour:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await answering(OK)(reader, writer)

    return behave


def filled(head: bytes) -> bytes:
    """Pad the answer to 16 KiB, which is the most that the sender reads."""
    return head.ljust(connections.ANSWER_BYTES, b"a")


class SlowNames(Names):
    async def resolve(self, *arguments: Any) -> Any:
        await asyncio.sleep(1.0)
        return await super().resolve(*arguments)


class TestConnecting:
    @pytest.mark.parametrize(("address", "host"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
    def test_to_an_address_queries_no_name_server(self, address: str, host: str) -> None:
        async def scenario() -> tuple[str, int]:
            names = Names([])
            async with receiving(answering(OK), host=address) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS, names=names) as pool:
                    return await verdict(pool, f"http://{host}:{receiver.port}/"), names.asked

        assert run(scenario()) == ("200", 0)

    @pytest.mark.parametrize("host", ["127.1", "2130706433", "0", "127.000.000.001", "127.0.0.1.", ""])
    def test_to_an_address_in_an_unusual_spelling_is_refused(self, host: str) -> None:
        async def scenario() -> tuple[str, int]:
            names = Names(["127.0.0.1"])
            async with transport.open_pool(allow_loopback=True, tls=TLS, names=names) as pool:
                return await verdict(pool, f"http://{host}:{free_port()}/"), names.asked

        assert run(scenario()) == ("the URL is not valid", 0)

    def test_tries_one_address_after_the_other(self) -> None:
        async def scenario() -> str:
            names = Names(["127.0.0.9", "::1", "127.0.0.1"])
            async with receiving(answering(OK)) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS, names=names) as pool:
                    return await verdict(pool, f"http://shop.example.com:{receiver.port}/")

        assert run(scenario()) == "200"

    def test_tries_only_a_few_addresses_of_a_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        names = Names([f"127.0.1.{number}" for number in range(200)] + ["127.0.0.1"])
        judged: list[str] = []

        def judge(address: str, *, allow_loopback: bool) -> bool:
            judged.append(address)
            return True

        async def scenario() -> str:
            async with receiving(answering(OK)) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS, names=names) as pool:
                    return await verdict(pool, f"http://shop.example.com:{receiver.port}/")

        monkeypatch.setattr(targets, "is_allowed", judge)
        assert run(scenario()) == "could not connect"
        # The resolver checks each of the 201 addresses once. All other checks are made before an attempt to
        # connect.
        assert 0 < len(judged) - 201 <= 36

    def test_to_several_addresses_without_a_listener_names_no_address(self) -> None:
        async def scenario() -> str:
            names = Names(["127.0.0.9", "127.0.0.8", "::1"])
            async with transport.open_pool(allow_loopback=True, tls=TLS, names=names) as pool:
                return await verdict(pool, f"http://shop.example.com:{free_port()}/")

        assert run(scenario()) == "could not connect"

    def test_ends_at_the_deadline_while_the_name_is_looked_up(self) -> None:
        async def scenario() -> str:
            async with transport.open_pool(allow_loopback=True, tls=TLS, names=Names(None)) as pool:
                return await verdict(pool, "https://shop.example.com/", deadline_seconds=0.1)

        assert run(scenario()) == "timeout after 0.1 s"

    def test_ends_at_the_deadline_in_the_handshake_and_closes_the_connection(self) -> None:
        async def scenario() -> tuple[str, bool]:
            async with receiving(keeping_silent, reads=False) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"https://127.0.0.1:{receiver.port}/"
                    return await verdict(pool, url, deadline_seconds=0.1), await is_left(receiver)

        assert run(scenario()) == ("timeout after 0.1 s", True)

    def test_and_the_response_share_one_deadline(self, tmp_path: Path) -> None:
        server, client = certificate(tmp_path)

        async def scenario() -> tuple[str, float]:
            async with receiving(keeping_silent, server) as receiver:
                names = SlowNames(["127.0.0.1"])
                async with transport.open_pool(allow_loopback=True, tls=client, names=names) as pool:
                    url, started = f"https://shop.example.com:{receiver.port}/", time.monotonic()
                    words = await verdict(pool, url, deadline_seconds=1.2)
                    return words, time.monotonic() - started

        words, seconds = run(scenario())
        assert words == "timeout after 1.2 s" and 1.19 <= seconds < 2.2


class TestKeeping:
    def test_simultaneous_posts_use_one_connection_each_and_all_are_kept(self) -> None:
        async def scenario() -> tuple[set[str], int]:
            async with receiving(late(0.02)) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    answers = [
                        *await asyncio.gather(verdict(pool, f"{url}a"), verdict(pool, f"{url}b")),
                        *await asyncio.gather(verdict(pool, f"{url}c"), verdict(pool, f"{url}d")),
                    ]
                    return set(answers), receiver.connections

        assert run(scenario()) == ({"200"}, 2)

    def test_is_for_one_scheme_host_and_port(self, tmp_path: Path) -> None:
        server, client = certificate(tmp_path)

        async def scenario() -> tuple[list[str], int, int]:
            names = Names(["127.0.0.1"])
            async with receiving(answering(OK)) as plain, receiving(answering(OK), server) as secret:
                async with transport.open_pool(allow_loopback=True, tls=client, names=names) as pool:
                    urls = [
                        *(f"http://a.example.com:{plain.port}/", f"http://b.example.com:{plain.port}/"),
                        f"https://shop.example.com:{secret.port}/",
                    ]
                    answers = [await verdict(pool, url) for url in urls * 2]
                    return answers, plain.connections, secret.connections

        assert run(scenario()) == (["200"] * 6, 2, 1)

    @pytest.mark.parametrize(
        ("head", "is_kept"),
        [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nthanks", True),
            (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nthanks", False),
            (b"HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nthanks", False),
            (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 6\r\n\r\nthanks", True),
            (b"HTTP/1.1 101 Yes\r\n\r\n", False),
            (b"HTTP/1.1 101 Yes\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", False),
            (filled(b"HTTP/1.1 200 OK\r\nContent-Length: 16342\r\n\r\n"), True),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 16384\r\n\r\n" + b"a" * 16384, False),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 131072\r\n\r\n" + b"a" * 131072, False),
        ],
        ids=["1.1", "close", "1.0", "1.0 kept alive", "101", "upgrade", "16 KiB", "more", "128 KiB"],
    )
    def test_follows_the_headers_of_the_response(self, head: bytes, is_kept: bool) -> None:
        async def scenario() -> int:
            async with receiving(answering(head)) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    assert await verdict(pool, url) == await verdict(pool, url)
                    await is_left(receiver, 0 if is_kept else 2)
                    return receiver.connections

        assert run(scenario()) == (1 if is_kept else 2)

    def test_ends_with_a_response_without_a_length(self) -> None:
        async def scenario() -> tuple[transport.Answer, int]:
            async with receiving(closing(b"HTTP/1.1 200 OK\r\n\r\ntha", b"nks")) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    return await transport.post(pool, url, {}, b""), receiver.connections

        answer, connected = run(scenario())
        assert (answer.http_status, answer.excerpt, connected) == (200, "thanks", 1)

    @pytest.mark.parametrize("limit", ["IDLE_SECONDS", "KEPT_SECONDS"])
    def test_ends_automatically(self, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connections, limit, 0.1)

        async def scenario() -> bool:
            async with receiving(answering(OK)) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    assert await verdict(pool, f"http://127.0.0.1:{receiver.port}/") == "200"
                    assert receiver.left == 0
                    return await is_left(receiver)

        assert run(scenario())

    def test_ends_in_time_even_if_our_loop_is_late(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connections, "IDLE_SECONDS", 0.1)

        async def scenario() -> tuple[list[str], int]:
            async with receiving(answering(OK)) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    answers = [await verdict(pool, url)]
                    time.sleep(0.15)  # blocks the event loop
                    answers.append(await verdict(pool, url))
                    return answers, receiver.connections

        assert run(scenario()) == (["200", "200"], 2)

    def test_leaves_no_task_or_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connections, "IDLE_SECONDS", 0.1)

        async def scenario() -> list[str]:
            async with receiving(in_turn(answering(OK), closing(OK))) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    answers = [await verdict(pool, f"http://127.0.0.1:{receiver.port}/") for _ in range(2)]
                    await asyncio.sleep(0.3)
                    gc.collect()
                    return [
                        *answers,
                        *(
                            str(each)
                            for each in gc.get_objects()
                            if issubclass(type(each), connections.Connection)
                        ),
                    ]

        assert run(scenario()) == ["200", "200"]


class TestDeadline:
    """Each request on a kept connection has its own deadline."""

    @pytest.mark.parametrize(("earlier", "deadline"), [(9.0, 0.1), (0.2, 0.4)])
    def test_is_that_of_the_last_request(self, earlier: float, deadline: float) -> None:
        async def scenario() -> tuple[list[str], float, bool]:
            async with receiving(in_turn(answering(OK), keeping_silent)) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    answers = [await verdict(pool, url, deadline_seconds=earlier)]
                    started = time.monotonic()
                    answers.append(await verdict(pool, url, deadline_seconds=deadline))
                    return answers, time.monotonic() - started, await is_left(receiver)

        answers, seconds, left = run(scenario())
        assert (answers, left) == (["200", f"timeout after {deadline} s"], True)
        assert deadline - 0.01 <= seconds < 9

    def test_of_an_earlier_request_does_not_count(self) -> None:
        async def scenario() -> tuple[list[str], int]:
            async with receiving(in_turn(answering(OK), late(0.3))) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    answers = [await verdict(pool, url, deadline_seconds=seconds) for seconds in (0.1, 5)]
                    return answers, receiver.connections

        assert run(scenario()) == (["200", "200"], 1)

    def test_that_is_over_is_a_timeout(self) -> None:
        async def scenario() -> list[str]:
            async with receiving(answering(OK)) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    return [await verdict(pool, url, deadline_seconds=each) for each in (0, 5, 0)]

        assert run(scenario()) == ["timeout after 0 s", "200", "timeout after 0 s"]


class TestClosing:
    @pytest.mark.parametrize(
        ("behaviour", "came"),
        [
            (keeping_silent, "CancelledError"),
            (forever(b"a", start=b"HTTP/1.1 200 OK\r\n\r\n", pause=0.01), "200"),
        ],
        ids=["before the answer", "in the body"],
    )
    def test_of_a_cancelled_post_closes_its_connection_and_keeps_its_response(
        self, behaviour: Behaviour, came: str
    ) -> None:
        async def scenario() -> tuple[object, bool]:
            async with receiving(behaviour) as receiver:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    posting = asyncio.create_task(verdict(pool, f"http://127.0.0.1:{receiver.port}/"))
                    await asyncio.sleep(0.1)
                    posting.cancel()
                    (cut,) = await asyncio.gather(posting, return_exceptions=True)
                    return cut if isinstance(cut, str) else type(cut).__name__, await is_left(receiver)

        assert run(scenario()) == (came, True)

    def test_closes_an_excess_connection_after_its_response(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connections, "MAX_OPEN", 3)

        async def scenario() -> tuple[list[str], bool, int, int]:
            async with receiving(late(0.05)) as receiver, receiving(answering(OK)) as other:
                async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                    answers = [await verdict(pool, f"http://127.0.0.1:{other.port}/")]
                    url = f"http://127.0.0.1:{receiver.port}/"
                    answers += await asyncio.gather(*(verdict(pool, url) for _ in range(5)))
                    has_left = await is_left(receiver, 3)
                    answers += await asyncio.gather(*(verdict(pool, url) for _ in range(2)))
                    return answers, has_left, receiver.connections, other.left

        assert run(scenario()) == (["200"] * 8, True, 5, 0)

    @pytest.mark.parametrize(
        ("files", "maximum"), [(256, 128), (20_000, 4096), (resource.RLIM_INFINITY, 4096)]
    )
    def test_uses_at_most_half_of_the_file_descriptors(
        self, monkeypatch: pytest.MonkeyPatch, files: int, maximum: int
    ) -> None:
        monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
        assert connections.max_open() == maximum

    @pytest.mark.parametrize("is_secret", [False, True], ids=["plain", "TLS"])
    def test_closes_kept_and_used_connections(self, is_secret: bool, tmp_path: Path) -> None:
        server, client = certificate(tmp_path)

        async def scenario() -> tuple[list[str], bool, int]:
            behaviour = in_turn(late(0.05), late(0.05), keeping_silent)
            async with receiving(behaviour, server if is_secret else None) as receiver:
                names = Names(["127.0.0.1"])
                url = f"http{'s' if is_secret else ''}://shop.example.com:{receiver.port}/"
                async with transport.open_pool(allow_loopback=True, tls=client, names=names) as pool:
                    answers = await asyncio.gather(*(verdict(pool, url) for _ in range(2)))
                    hanging = asyncio.create_task(verdict(pool, url))
                    await asyncio.sleep(connections.STALE_SECONDS + 0.1)
                return [*answers, await hanging], await is_left(receiver, 2), names.asked

        assert run(scenario()) == (["200", "200", CLOSED], True, 2)

    def test_prevents_new_connections(self) -> None:
        async def scenario() -> tuple[str, int]:
            async with receiving(answering(OK)) as receiver:
                names = SlowNames(["127.0.0.1"])
                async with transport.open_pool(allow_loopback=True, tls=TLS, names=names) as pool:
                    url = f"http://shop.example.com:{receiver.port}/"
                    posting = asyncio.create_task(verdict(pool, url))
                    await asyncio.sleep(0.1)
                return await posting, len(receiver.requests)

        assert run(scenario()) == (CLOSED, 0)
