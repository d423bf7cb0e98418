"""Opens connections to receivers, with limits that aiohttp's own connection class does not have.

Without these limits, aiohttp has four problems. It loses the status of a response if invalid bytes follow the head in
the same packet. It reads any number of interim responses. If bytes arrive while a connection is idle, it treats them as
the next response. It never closes a connection that is used often.
"""

import asyncio
import functools
import re
import resource
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader

# The maximum number of bytes in one response: interim responses, head, body, chunk sizes and trailers.
ANSWER_BYTES = 16 * 1024
# If a reused connection ends sooner than this after a request, it is assumed to have ended before the request.
STALE_SECONDS = 0.5
# A connection is closed KEPT_SECONDS after it was opened (rule target.each_connection), or after it was idle for
# IDLE_SECONDS.
KEPT_SECONDS, IDLE_SECONDS = 59.0, 30.0
MAX_OPEN = 4096
BLANK_LINE = re.compile(rb"[^\r\n]\r?\n\r?\n")
# Number of bytes to remember from the previous packet, because a blank line can be split between two packets.
LONGEST_OVERLAP = 4


class HeadTooLong(aiohttp.ClientError):
    """16 KiB arrived, but they did not contain the complete head of a final response."""


class KeptConnectionLost(aiohttp.ServerDisconnectedError):
    """A reused connection had already ended when our request was sent.

    In this case, the receiver sends no response, or a 408 because it has waited too long for a request.
    """


class Connection(ResponseHandler):
    """A connection to a receiver. A response counts as soon as the head of the final response is complete."""

    def __init__(self, loop: asyncio.AbstractEventLoop, opened: set["Connection"], max_open: int) -> None:
        super().__init__(loop)
        self._opened, self._max_open = opened, max_open
        self._retirement: asyncio.TimerHandle
        self._requests = self._bytes_left = 0
        self._asked_at = 0.0
        self._awaits_head = False
        self._overlap = b""

    @property
    def should_close(self) -> bool:
        """Whether this connection must not be reused.

        In addition to aiohttp's own reasons, it is not reused if a part of a request was not sent, or if too many
        connections are open.
        """
        is_writing = self.transport is not None and bool(self.transport.get_write_buffer_size())
        return super().should_close or is_writing or len(self._opened) > self._max_open

    def set_response_params(self, **params: Any) -> None:
        """Reset the limits before a request is sent."""
        self._requests += 1
        self._asked_at = self._loop.time()
        self._bytes_left, self._awaits_head, self._overlap = ANSWER_BYTES, True, b""
        super().set_response_params(**params)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._opened.add(self)
        self._retirement = self._loop.call_later(KEPT_SECONDS, self._retire)

    def data_received(self, data: bytes) -> None:
        while data and self.is_connected():
            # If bytes arrive without a request, they must not be treated as the next response.
            if self._is_idle() or not self._bytes_left:
                self._cut(HeadTooLong())
                return
            # The parser gets the head separately, because it loses the head if invalid bytes follow. It also gets the
            # last byte separately. Otherwise, we could not see whether the response ended before that byte.
            end = self._end_of_head(data) if self._awaits_head else max(1, len(data) - 1)
            part, data = data[: min(end, self._bytes_left)], data[min(end, self._bytes_left) :]
            self._bytes_left -= len(part)
            super().data_received(part)
            if self._exception is not None:
                self._cut(self._exception)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Handle the head that the parser has read. The response can be interim, final or unexpected."""
        head, _ = data
        if not self._awaits_head or (head.code == 408 and head.should_close and self._is_stale()):
            self._cut(KeptConnectionLost())
            return
        if head.code >= 200 or head.code == 101:
            self._awaits_head = False
            self._should_close = head.code == 101 or self._should_close
        super().feed_data(data, size)

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """End the request with an error, without a response.

        A reused connection can end soon after a request and before the first byte of a response. It is then assumed
        to have ended before the request, and the error is KeptConnectionLost.
        """
        is_untouched = self._awaits_head and self._bytes_left == ANSWER_BYTES
        super().set_exception(KeptConnectionLost() if is_untouched and self._is_stale() else exc, *cause)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._retirement.cancel()
        self._opened.discard(self)
        self._end_body()
        super().connection_lost(exc)

    def close(self) -> None:
        self._opened.discard(self)
        # This does not wait for the receiver, not even to close the TLS connection.
        self.abort()

    def _retire(self) -> None:
        # This takes effect at the end of the current response.
        self.force_close()
        if self._is_idle():
            self.abort()

    def _is_idle(self) -> bool:
        return not self._awaits_head and (self._payload is None or self._payload.is_eof())

    def _is_stale(self) -> bool:
        """Return whether the connection is assumed to have ended before our request was sent."""
        return self._requests > 1 and self._loop.time() - self._asked_at < STALE_SECONDS

    def _end_of_head(self, data: bytes) -> int:
        """Return the position at which the head ends in `data`, or the length of `data` if the head is incomplete."""
        recent = self._overlap + data
        blank_line = BLANK_LINE.search(recent)
        end = len(data) if blank_line is None else blank_line.end() - len(self._overlap)
        self._overlap = recent[-LONGEST_OVERLAP:] if blank_line is None else b""
        return end

    def _cut(self, error: BaseException) -> None:
        """Abort the connection.

        If the head is complete, the response is used, with the part of the body that has arrived. Otherwise, the
        request fails with `error`.
        """
        if self._awaits_head:
            self.set_exception(error)
        self._end_body()
        if self.transport is not None:
            self.transport.abort()

    def _end_body(self) -> None:
        """Prevent the reuse of the connection. If the body is unfinished, end it with the part that has arrived."""
        self.force_close()
        payload, self._payload = self._payload, None
        if payload is not None and not payload.is_eof():
            payload.feed_eof()


class Connector(aiohttp.TCPConnector):
    """Opens any number of `Connection` objects. It resolves the host name again for each of them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(limit=0, use_dns_cache=False, **options)
        opened: set[Connection] = set()
        # aiohttp calls this factory whenever it needs a new connection.
        self._factory = functools.partial(Connection, self._loop, opened, max_open())  # type: ignore[assignment]


def max_open() -> int:
    """Return how many connections can be open before each connection is closed after its response.

    The number is at most half of the number of files that the process may have open.
    """
    maximum, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_OPEN if maximum == resource.RLIM_INFINITY else min(MAX_OPEN, maximum // 2)
