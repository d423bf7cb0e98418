"""Sends one POST to a merchant's endpoint, in at most 15 s and only to an allowed address.

Rules delivery.deadline, target.*.
"""

import asyncio
import contextlib
import functools
import socket
import ssl
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import aiohttp
import uvloop
import yarl
from aiohttp.abc import AbstractResolver

from webhooks import connections, retries, targets

DEADLINE_SECONDS = 15.0
BODY_SECONDS = 2.0
EXCERPT_BYTES = 1024
Returned = TypeVar("Returned")

CERTIFICATE_TROUBLE = {
    9: "TLS: the certificate is not valid yet",
    10: "TLS: the certificate has expired",
    62: "TLS: the certificate is for another host",
    64: "TLS: the certificate is for another host",
}

# The first type that matches the failure decides the text.
FAILURES: tuple[tuple[type[BaseException], str], ...] = (
    (aiohttp.ClientConnectorDNSError, "the host name could not be resolved"),
    (aiohttp.ClientConnectorSSLError, "TLS: the handshake failed"),
    (aiohttp.ClientConnectorError, "could not connect"),
    (aiohttp.ClientConnectionError, "the connection was closed before an answer"),
    (connections.HeadTooLong, "the answer's headers are longer than 16 KiB"),
    (aiohttp.InvalidURL, "the URL is not valid"),
    (aiohttp.ClientError, "the answer was not valid HTTP"),
)


@dataclass(frozen=True)
class Answer:
    """The result of one POST.

    `http_status` is None if there was no answer. `error_message` is None for 2xx. `excerpt` is the beginning of the
    answer's body: at most 1 KiB of text, in which control characters are replaced.
    """

    http_status: int | None
    error_message: str | None
    excerpt: str
    duration_ms: int


def run(main: Coroutine[Any, Any, Returned]) -> Returned:
    """Run a coroutine on uvloop's event loop, which does less work per byte than asyncio's own."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def tls_context() -> ssl.SSLContext:
    """Return a context for TLS 1.2 or newer that checks host names and trusts the system's root certificates.

    Creating a context takes long, so callers should share one.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class Pool(NamedTuple):
    """The two sessions for POSTs: `reusing` reuses its connections, `single_use` opens a new one for each POST."""

    reusing: aiohttp.ClientSession
    single_use: aiohttp.ClientSession


@contextlib.asynccontextmanager
async def open_pool(
    *, allow_loopback: bool, tls: ssl.SSLContext | None = None, names: AbstractResolver | None = None
) -> AsyncIterator[Pool]:
    """Open a pool that connects only to allowed addresses, and keeps each connection for at most 60 s.

    The pool ignores proxy settings in the environment, and does not store cookies.
    """

    def guarded_socket(address: tuple[Any, ...]) -> socket.socket:
        # This is the last check, and it checks the address that is really used. If the URL contains an IP address,
        # aiohttp does not call the resolver.
        family, kind, protocol, _, endpoint = address
        targets.check_addresses([endpoint[0]], allow_loopback=allow_loopback)
        return socket.socket(family, kind, protocol)

    resolver = targets.GuardedResolver(allow_loopback=allow_loopback, names=names)
    connector = functools.partial(
        connections.Connector, ssl=tls or tls_context(), resolver=resolver, socket_factory=guarded_socket
    )
    reusing = _open_session(connector(keepalive_timeout=connections.IDLE_SECONDS))
    async with reusing, _open_session(connector(force_close=True)) as single_use:
        try:
            yield Pool(reusing, single_use)
        finally:
            await resolver.close()


def _open_session(connector: connections.Connector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept": "*/*", "Accept-Encoding": "identity"},
        timeout=aiohttp.ClientTimeout(total=None),  # post() sets the only deadline
        auto_decompress=False,
        trust_env=False,
        max_line_size=connections.ANSWER_BYTES,
        max_field_size=connections.ANSWER_BYTES,
        max_headers=connections.ANSWER_BYTES,
    )


async def post(
    pool: Pool,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> Answer:
    """Send one POST. Never raises: if the POST fails, the Answer contains the reason.

    `headers` must include the User-Agent. The result is final when the status and the headers of the response are
    complete. After that, the body is read for at most 2 s, and does not change the result.
    """
    started = time.monotonic()
    try:
        async with asyncio.timeout(deadline_seconds):
            response = await _send_post(pool, _parse_url(url), headers, body)
    except Exception as failure:
        return Answer(None, describe_failure(failure, deadline_seconds), "", _milliseconds_since(started))
    left = deadline_seconds - (time.monotonic() - started)
    excerpt = await _read_excerpt(response, min(left, BODY_SECONDS))
    error = None if retries.is_delivered(response.status) else f"HTTP {response.status}"
    return Answer(response.status, error, excerpt, _milliseconds_since(started))


async def _send_post(
    pool: Pool, url: yarl.URL, headers: Mapping[str, str], body: bytes
) -> aiohttp.ClientResponse:
    try:
        return await pool.reusing.post(url, headers=headers, data=body, allow_redirects=False)
    except connections.KeptConnectionLost:
        # A receiver can close a kept connection just as we reuse it. That does not count as an answer, so the request
        # is sent again over a new connection. If the request makes the receiver crash, the second request fails too,
        # and there is no third one.
        return await pool.single_use.post(url, headers=headers, data=body, allow_redirects=False)


@functools.lru_cache(maxsize=1024)  # so that an endpoint's URL is parsed once, not for every delivery
def _parse_url(url: str) -> yarl.URL:
    return yarl.URL(url, encoded=True)


def describe_failure(failure: BaseException, deadline_seconds: float) -> str:
    """Return the reason why there was no answer, as a text that never contains an IP address."""
    if isinstance(failure, TimeoutError):
        return f"timeout after {deadline_seconds:.2g} s"
    if isinstance(failure, aiohttp.ClientConnectorCertificateError):
        code = getattr(failure.certificate_error, "verify_code", None)
        return CERTIFICATE_TROUBLE.get(code or 0, "TLS: the certificate is not trusted")
    if isinstance(failure, aiohttp.ClientConnectorError):
        if isinstance(failure.os_error, targets.AddressRefused):
            return "address not allowed"
        # The TCP connection was established, so the TLS handshake has failed.
        if isinstance(failure.os_error, ConnectionResetError):
            return "TLS: the handshake failed"
    return next(
        (words for kind, words in FAILURES if isinstance(failure, kind)), "the request could not be sent"
    )


async def _read_excerpt(response: aiohttp.ClientResponse, seconds: float) -> str:
    """Return the part of the body that arrives within `seconds`, or until the task is cancelled."""
    try:
        if not response.content.is_eof():  # a body that has already arrived needs no timeout
            async with asyncio.timeout(seconds):
                await response.content.wait_eof()
    except (TimeoutError, asyncio.CancelledError):
        # The result is already final, so it is returned and recorded even if the task is cancelled.
        pass
    answered = response.content.read_nowait()
    # After a complete answer, the connection is already back in the pool, so this does not close it.
    response.close()
    return _safe_text(answered[:EXCERPT_BYTES])


def _safe_text(body: bytes) -> str:
    """Return the body as text, at most 1 KiB in UTF-8. NUL and other control characters are replaced."""
    text = body.decode("utf-8", "replace").replace("\r\n", "\n")
    if not text.replace("\n", "").replace("\t", "").isprintable():
        text = "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in text)
    return text.encode()[:EXCERPT_BYTES].decode("utf-8", "ignore")


def _milliseconds_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
