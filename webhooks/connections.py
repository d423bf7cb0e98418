"""Bounds on what a receiver's bytes can do to us, which aiohttp's connection does not have.

aiohttp loses an answer's status if invalid bytes follow its head in one packet. It reads interim answers
without an end. It takes bytes that wait on a kept connection for the next answer. It keeps a connection for
ever if it is used often.
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

ANSWER_BYTES = 16 * 1024  # interim answers, head and body as they arrive, with chunk sizes and trailers
STALE_SECONDS = 0.5  # if a receiver's close crosses our request, it arrives within this time
# The longest life of a connection (rule target.each_connection), and the longest time without a request.
KEPT_SECONDS, IDLE_SECONDS = 59.0, 30.0
MAX_OPEN = 4096
BLANK_LINE = re.compile(rb"[^\r\n]\r?\n\r?\n")
LONGEST_OVERLAP = 4  # bytes of a blank line that arrives in two packets


class HeadTooLong(aiohttp.ClientError):
    """16 KiB arrived, but no complete head of a final answer."""


class KeptConnectionLost(aiohttp.ServerDisconnectedError):
    """A kept connection ended when it was used again: without an answer, or with a 408 for no request."""


class Connection(ResponseHandler):
    """Reads one answer to a request; once the head of the final answer is complete, the answer counts."""

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
        """Whether it takes no further request, also if a request is partly unsent or too many are open."""
        is_writing = self.transport is not None and bool(self.transport.get_write_buffer_size())
        return super().should_close or is_writing or len(self._opened) > self._max_open

    def set_response_params(self, **params: Any) -> None:
        """Reset the bounds for a request that is about to be sent."""
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
            # Bytes that no request asked for are never taken for the next answer.
            if self._is_idle() or not self._bytes_left:
                self._cut(HeadTooLong())
                return
            # The parser gets a head separately, because an error in what follows would make it lose the head.
            # It also gets the last byte separately. Otherwise we could not see that the answer ended before
            # that byte.
            end = self._end_of_head(data) if self._awaits_head else max(1, len(data) - 1)
            part, data = data[: min(end, self._bytes_left)], data[min(end, self._bytes_left) :]
            self._bytes_left -= len(part)
            super().data_received(part)
            if self._exception is not None:
                self._cut(self._exception)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Handle a head that the parser has read: of an interim, the final or an unexpected answer."""
        head, _ = data
        if not self._awaits_head or (head.code == 408 and head.should_close and self._is_stale()):
            self._cut(KeptConnectionLost())
            return
        if head.code >= 200 or head.code == 101:
            self._awaits_head = False
            self._should_close = head.code == 101 or self._should_close
        super().feed_data(data, size)

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """End without an answer.

        A kept connection that ends before the first byte had already ended before.
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
        self.abort()  # without waiting for the receiver, in TLS either

    def _retire(self) -> None:
        self.force_close()  # after the answer that is in progress
        if self._is_idle():
            self.abort()

    def _is_idle(self) -> bool:
        return not self._awaits_head and (self._payload is None or self._payload.is_eof())

    def _is_stale(self) -> bool:
        """Return whether an end at this moment shows that the kept connection ended before the request."""
        return self._requests > 1 and self._loop.time() - self._asked_at < STALE_SECONDS

    def _end_of_head(self, data: bytes) -> int:
        """Return where the next head ends in `data`; its length if there is no blank line yet."""
        seen = self._overlap + data
        blank_line = BLANK_LINE.search(seen)
        end = len(data) if blank_line is None else blank_line.end() - len(self._overlap)
        self._overlap = seen[-LONGEST_OVERLAP:] if blank_line is None else b""
        return end

    def _cut(self, error: BaseException) -> None:
        """Stop reading.

        If the head is complete, the answer counts as far as it has arrived. Otherwise the error counts.
        """
        if self._awaits_head:
            self.set_exception(error)
        self._end_body()
        if self.transport is not None:
            self.transport.abort()

    def _end_body(self) -> None:
        """If a body was cut or broken, end it with the part that has arrived."""
        self.force_close()
        payload, self._payload = self._payload, None
        if payload is not None and not payload.is_eof():
            payload.feed_eof()


class Connector(aiohttp.TCPConnector):
    """Makes connections of the class above, without a limit, and resolves the name for each of them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(limit=0, use_dns_cache=False, **options)
        opened: set[Connection] = set()
        # aiohttp calls the factory like the class, with its own arguments. Only the first ones are bound
        # here.
        self._factory = functools.partial(Connection, self._loop, opened, max_open())  # type: ignore[assignment]


def max_open() -> int:
    """Return how many connections can be open and still be kept, at most half of the process's file limit."""
    maximum, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_OPEN if maximum == resource.RLIM_INFINITY else min(MAX_OPEN, maximum // 2)
