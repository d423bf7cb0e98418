"""One POST to a merchant's endpoint: 15 s in all, to an allowed address alone (rules delivery.deadline, target.*)."""

import asyncio
import functools
import socket
import ssl
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import uvloop
import yarl
from aiohttp.abc import AbstractResolver

from webhooks import connections, pools, retries, targets

DEADLINE_SECONDS = 15.0
BODY_SECONDS = 2.0
EXCERPT_BYTES = 1024
Returned = TypeVar("Returned")


@dataclass(frozen=True)
class Answer:
    """What came of one POST. `http_status` is None without an answer; `error_message` is None on 2xx.

    `excerpt` is the beginning of the answer's body, at most 1 KiB of text that any database takes.
    """

    http_status: int | None
    error_message: str | None
    excerpt: str
    duration_ms: int


def run(main: Coroutine[Any, Any, Returned]) -> Returned:
    """Run a coroutine on the event loop that deliveries have: as asyncio's, with less work for each byte."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def tls_context() -> ssl.SSLContext:
    """TLS 1.2 or newer, the system's roots, the host name checked. Costly to make: share one per process."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def open_pool(
    *, allow_loopback: bool, tls: ssl.SSLContext | None = None, names: AbstractResolver | None = None
) -> pools.Pool:
    """Connections to allowed addresses only, kept for 60 s at most. It reads no environment and keeps no cookies."""

    def guarded_socket(address: tuple[Any, ...]) -> socket.socket:
        # The last gate: it sees the very address that is connected to; a resolver is not asked for literals.
        family, kind, protocol, _, endpoint = address
        targets.check_resolved([endpoint[0]], allow_loopback=allow_loopback)
        return socket.socket(family, kind, protocol)

    return pools.Pool(
        tls=tls or tls_context(),
        resolver=targets.GuardedResolver(allow_loopback=allow_loopback, names=names),
        socket_factory=guarded_socket,
    )


async def post(
    pool: pools.Pool,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> Answer:
    """Sends one POST and never raises: what went wrong is in the Answer.

    The verdict is fixed once status and headers are complete; the body gets 2 s at most and changes nothing.
    """
    started = time.monotonic()
    due = started + deadline_seconds
    try:
        connection = await pool.ask(url, request(url, headers, body), due)
    except Exception as failure:
        return Answer(None, describe(failure, deadline_seconds), "", _milliseconds_since(started))
    try:
        answered = await connection.read(min(due, time.monotonic() + BODY_SECONDS))
    except asyncio.CancelledError:
        answered = b""  # whoever cuts this off is told all the same what the receiver has answered
    finally:
        pool.release(connection)
    status = connection.status
    error = None if retries.is_delivered(status) else f"HTTP {status}"
    return Answer(status, error, _safe_text(answered[:EXCERPT_BYTES]), _milliseconds_since(started))


def request(url: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """The bytes of a POST. Raises ValueError for a header that would end its line."""
    lines = [_opening(url), *(f"{name}: {value}" for name, value in headers.items())]
    if not "".join(lines[1:]).isprintable():
        raise ValueError("a header holds a line break or another control character")
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


@functools.lru_cache(maxsize=1024)  # made once for an endpoint, not for every delivery
def _opening(url: str) -> str:
    parsed = yarl.URL(url, encoded=True)
    return "\r\n".join(
        [
            f"POST {parsed.raw_path_qs} HTTP/1.1",
            f"Host: {parsed.host_port_subcomponent}",
            "Accept: */*",
            "Accept-Encoding: identity",
        ]
    )


def describe(failure: BaseException, deadline_seconds: float) -> str:
    """Why there was no answer, in words that never name an address."""
    if isinstance(failure, TimeoutError):
        return f"timeout after {deadline_seconds:.2g} s"
    if isinstance(failure, targets.AddressRefused):
        return "address not allowed"
    return str(failure) if isinstance(failure, connections.NoAnswer) else "the request could not be sent"


def _safe_text(body: bytes) -> str:
    """Text without NUL and other control characters, at most 1 KiB in UTF-8."""
    text = body.decode("utf-8", "replace").replace("\r\n", "\n")
    if not text.replace("\n", "").replace("\t", "").isprintable():
        text = "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in text)
    return text.encode()[:EXCERPT_BYTES].decode("utf-8", "ignore")


def _milliseconds_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
