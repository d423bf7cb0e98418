"""A table of hostile receivers: how each one behaves, and the result that the sender must record."""

import asyncio
import gzip
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

from tests.webhooks.receivers.receiving import Behaviour, answering

TIMEOUT = "timeout"  # the error message starts with this word and continues with the deadline
CLOSED = "the connection was closed before an answer"
INVALID = "the answer was not valid HTTP"
TOO_LONG = "the answer's headers are longer than 16 KiB"
RECEIVED = b"HTTP/1.1 200 OK\r\n"
CHUNKED = RECEIVED + b"Transfer-Encoding: chunked\r\n\r\n"
LONG = RECEIVED + b"Content-Length: 314572800\r\n\r\n"
RESET = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets the connection


class Hostility(NamedTuple):
    """How a receiver behaves, and what the sender logs.

    `reads` is false if the receiver does not read the request.
    """

    name: str
    behaviour: Behaviour
    http_status: int | None
    error_message: str | None
    reads: bool = True


def forever(packet: bytes, *, start: bytes = b"", pause: float = 0.0) -> Behaviour:
    """Write `start` once. Then write `packet` again and again, with a pause of `pause` seconds after each packet."""

    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(packet)
            await writer.drain()
            await asyncio.sleep(pause)

    return behave


def resetting(*packets: bytes) -> Behaviour:
    """Write each packet, wait a little, and reset the connection."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answering(*packets)(reader, writer)
        await asyncio.sleep(0.02)
        writer.get_extra_info("socket").setsockopt(*RESET)
        writer.transport.abort()

    return behave


async def keeping_silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read(-1)


def half_closing(*packets: bytes) -> Behaviour:
    """Write each packet, close the connection only for sending, and continue to read."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answering(*packets)(reader, writer)
        writer.write_eof()
        await reader.read(-1)

    return behave


def closing(*packets: bytes) -> Behaviour:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answering(*packets)(reader, writer)
        writer.close()

    return behave


def slow(*, pause: float) -> Iterator[Hostility]:
    """Yield receivers that never finish an answer. The time between two packets is `pause` seconds."""
    cases = {
        "silence": keeping_silent,
        "dribbled status line": forever(b"K", start=b"HTTP/1.1 200 O", pause=pause),
        "dribbled headers": forever(b"a", start=RECEIVED + b"X-A: ", pause=pause),
        "dribbled header lines": forever(b"X-A: b\r\n", start=RECEIVED, pause=pause),
        "dribbled blank lines": forever(b"\r\n", pause=pause),
        "endless 100 Continue": forever(b"HTTP/1.1 100 Continue\r\n\r\n", pause=pause),
        "endless 102 Processing": forever(b"HTTP/1.1 102 Processing\r\n\r\n", pause=pause),
        "endless 103 Early Hints": forever(b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n", pause=pause),
        "headers without an end": answering(RECEIVED + b"X-A: b\r\n"),
    }
    for name, behaviour in cases.items():
        yield Hostility(name, behaviour, None, TIMEOUT)
    yield Hostility("silence after accept", keeping_silent, None, TIMEOUT, reads=False)


def greedy() -> Iterator[Hostility]:
    """Yield receivers that send as many bytes as they can, as fast as they can."""
    heads = {
        "flood of 100 Continue": b"HTTP/1.1 100 Continue\r\n\r\n" * 2000,
        "flood of 102 Processing": b"HTTP/1.1 102 Processing\r\n\r\n" * 2000,
        "flood of 103 Early Hints": b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n" * 1000,
        "flood of blank lines": b"\r\n" * 20_000,
    }
    for name, packet in heads.items():
        yield Hostility(name, forever(packet), None, TOO_LONG)
    headers = b"".join(b"X-%d: a\r\n" % number for number in range(50_000))
    yield Hostility("50,000 headers", answering(RECEIVED + headers + b"\r\n"), None, TOO_LONG)
    yield Hostility("one huge header", forever(b"a" * 65536, start=RECEIVED + b"X: "), None, TOO_LONG)
    yield Hostility("a header name without an end", forever(b"a" * 65536, start=RECEIVED), None, TOO_LONG)
    yield Hostility("a reason without an end", forever(b"a" * 65536, start=b"HTTP/1.1 200 "), None, TOO_LONG)
    bodies = {
        "300 MB": forever(b"a" * 65536, start=LONG),
        "300 MB without a length": forever(b"a" * 65536, start=RECEIVED + b"\r\n"),
        "300 MB of tiny chunks": forever(b"1\r\na\r\n" * 10_000, start=CHUNKED),
        "a chunk extension without an end": forever(b"a" * 65536, start=CHUNKED + b"1;"),
        "trailers without an end": forever(b"X-A: b\r\n" * 8000, start=CHUNKED + b"0\r\n"),
        "a trailer without an end": forever(b"a" * 65536, start=CHUNKED + b"0\r\nX-A: "),
        "a gzip bomb": bomb(),
    }
    for name, behaviour in bodies.items():
        yield Hostility(name, behaviour, 200, None)


def bomb() -> Behaviour:
    packed = gzip.compress(b"a" * 1_000_000, mtime=0) * 300
    head = RECEIVED + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    return answering(head + packed)


def no_answer() -> Iterator[Hostility]:
    """Yield receivers that close or reset the connection before the answer is complete."""
    yield Hostility("reset at once", resetting(), None, CLOSED, reads=False)
    yield Hostility("reset before the answer", resetting(), None, CLOSED)
    yield Hostility("reset in the status line", resetting(b"HTTP/1.1 2"), None, CLOSED)
    yield Hostility("reset in the headers", resetting(RECEIVED + b"X-A: b\r\n"), None, CLOSED)
    yield Hostility("closed at once", closing(), None, CLOSED, reads=False)
    yield Hostility("closed before the answer", closing(), None, CLOSED)
    yield Hostility("closed in the headers", closing(RECEIVED + b"X-A: b\r\n"), None, CLOSED)
    yield Hostility("half-closed before the answer", half_closing(), None, CLOSED)
    yield Hostility("half-closed in the headers", half_closing(RECEIVED), None, CLOSED)
    yield Hostility("closed after 100 Continue", closing(b"HTTP/1.1 100 Continue\r\n\r\n"), None, CLOSED)


NONSENSE: dict[str, bytes] = {
    "SSH": b"SSH-2.0-OpenSSH_9.7\r\n\r\n",
    "SMTP": b"220 mail.example.com ESMTP\r\n\r\n",
    "HTTP/0.9": b"<html>Hello</html>\r\n\r\n",
    "HTTP/2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80\x00\x04\x00\x01\r\n\r\n",
    "noise": bytes(range(256)) * 4,
    "a request": b"POST / HTTP/1.1\r\nHost: a\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "status 99": b"HTTP/1.1 99 Few\r\n\r\n",
    "status 1000": b"HTTP/1.1 1000 Many\r\n\r\n",
    "status -1": b"HTTP/1.1 -1 Less\r\n\r\n",
    "status 2e2": b"HTTP/1.1 2e2 Clever\r\n\r\n",
    "version 9.9": b"HTTP/9.9 200 OK\r\n\r\n",
    "a header without a colon": RECEIVED + b"nonsense\r\n\r\n",
    "NUL in a header": RECEIVED + b"X-A: a\x00b\r\n\r\n",
    "a negative length": RECEIVED + b"Content-Length: -1\r\n\r\n",
    "a length in words": RECEIVED + b"Content-Length: six\r\n\r\nthanks",
    "a length beyond 64 bits": RECEIVED + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "two lengths": RECEIVED + b"Content-Length: 6\r\nContent-Length: 7\r\n\r\nthanks",
    "one length twice": RECEIVED + b"Content-Length: 6\r\nContent-Length: 6\r\n\r\nthanks",
    "a length and chunks": RECEIVED + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}


def nonsense() -> Iterator[Hostility]:
    """Yield receivers whose answer begins with an invalid HTTP head."""
    for name, answer in NONSENSE.items():
        yield Hostility(name, answering(answer), None, INVALID)


BAD_BODIES: dict[str, bytes] = {
    "204 with a body": b"HTTP/1.1 204 No Content\r\n\r\nthanks all the same",
    "204 with a length": b"HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\nthanks",
    "204 with chunks": b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nthanks\r\n0\r\n\r\n",
    "205 with a body": b"HTTP/1.1 205 Reset\r\nContent-Length: 6\r\n\r\nthanks",
    "a body beyond its length": RECEIVED + b"Content-Length: 2\r\n\r\nthanks",
    "the longest length": RECEIVED + b"Content-Length: 18446744073709551615\r\n\r\nthanks",
    "no chunk size": CHUNKED + b"\r\n\r\n",
    "a chunk size in words": CHUNKED + b"six\r\nthanks\r\n",
    "a negative chunk size": CHUNKED + b"-6\r\nthanks\r\n",
    "a chunk size beyond 64 bits": CHUNKED + b"fffffffffffffffffffff\r\nthanks\r\n",
    "a chunk that is too long": CHUNKED + b"2\r\nthanks\r\n0\r\n\r\n",
    "nonsense in the trailers": CHUNKED + b"6\r\nthanks\r\n0\r\n\x00nonsense\r\n\r\n",
    "a length in the trailers": CHUNKED + b"6\r\nthanks\r\n0\r\nContent-Length: 99\r\n\r\n",
    "NUL and invalid UTF-8": RECEIVED + b"Content-Length: 6\r\n\r\na\x00\xff\xfe\xc3\x28",
    "no gzip": RECEIVED + b"Content-Encoding: gzip\r\nContent-Length: 6\r\n\r\nthanks",
    "an unknown encoding": RECEIVED + b"Content-Encoding: rot13\r\nContent-Length: 6\r\n\r\nthanks",
    "HTTP/1.0 kept alive": b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 6\r\n\r\nthanks",
    "a second answer": RECEIVED + b"Content-Length: 0\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
    "lines that end in LF alone": b"HTTP/1.1 200 OK\nContent-Length: 6\n\nthanks",
}


def bad_bodies() -> Iterator[Hostility]:
    """Yield receivers that send a complete 2xx head and a broken body, in the same packet or in a later one."""
    for name, answer in BAD_BODIES.items():
        status = int(answer.split()[1])
        blank = b"\r\n\r\n" if b"\r\n\r\n" in answer else b"\n\n"
        head, body = answer.split(blank, 1)
        yield Hostility(name, answering(answer), status, None)
        yield Hostility(f"{name}, later", answering(head + blank, body), status, None)
    sized = RECEIVED + b"Content-Length: 99\r\n\r\n"
    yield Hostility("reset after the headers", resetting(sized), 200, None)
    yield Hostility("reset in the body", resetting(sized, b"half"), 200, None)
    yield Hostility("closed in the body", closing(sized + b"half"), 200, None)
    yield Hostility("half-closed in the body", half_closing(sized, b"half"), 200, None)
    yield Hostility("HTTP/1.0", closing(b"HTTP/1.0 200 OK\r\n\r\nthanks"), 200, None)
    yield Hostility("a body that hangs", answering(sized), 200, None)
    yield Hostility("a dribbled body", forever(b"a", start=LONG, pause=0.02), 200, None)
    yield Hostility("a dribbled chunk size", forever(b"0", start=CHUNKED, pause=0.02), 200, None)


def others() -> Iterator[Hostility]:
    """Yield receivers that send a complete answer with a status other than 2xx, and then arbitrary bytes."""
    for status in (101, 300, 301, 302, 303, 304, 305, 307, 308, 400, 407, 426, 999):
        head = b"HTTP/1.1 %d X\r\nLocation: //[\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n" % status
        yield Hostility(f"status {status}", closing(head + b"\x81\x05hello"), status, f"HTTP {status}")


def all_but_slow() -> list[Hostility]:
    return [*greedy(), *no_answer(), *nonsense(), *bad_bodies(), *others()]
