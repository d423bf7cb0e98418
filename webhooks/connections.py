"""What the bytes of a receiver may do to us: bounds on aiohttp's connection, which has none of these of its own.

aiohttp loses an answer's status when nonsense follows its head in one packet, reads interim answers without an end,
takes what lies on a kept connection for the next answer, and keeps a connection for ever that is used often.
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

ANSWER_BYTES = 16 * 1024  # interim answers, head and body, as they come: chunk sizes and trailers too
STALE_SECONDS = 0.5  # a receiver's close that crosses our request arrives sooner
# From its beginning (rule target.each_connection), and without a request.
KEPT_SECONDS, IDLE_SECONDS = 59.0, 30.0
MAX_OPEN = 4096
BLANK_LINE = re.compile(rb"[^\r\n]\r?\n\r?\n")
LONGEST_OVERLAP = 4  # of a blank line that comes in two packets


class HeadTooLong(aiohttp.ClientError):
    """16 KiB came, and no complete head of a final answer."""


class KeptConnectionLost(aiohttp.ServerDisconnectedError):
    """A kept connection ended as it was used again, without an answer or with a 408 to nobody's request."""


class Connection(ResponseHandler):
    """Reads one answer to a request: once the head of the final one is complete it counts, whatever follows it."""

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
        """Whether it takes no further request: also while part of the last one is unsent, or too many are open."""
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
            # What nobody asked for is never taken for the next answer.
            if self._is_idle() or not self._bytes_left:
                self._cut(HeadTooLong())
                return
            # The parser gets heads alone: it would forget them over an error in what follows. And the last byte
            # alone: it would not tell that the answer had ended before.
            end = self._end_of_head(data) if self._awaits_head else max(1, len(data) - 1)
            part, data = data[: min(end, self._bytes_left)], data[min(end, self._bytes_left) :]
            self._bytes_left -= len(part)
            super().data_received(part)
            if self._exception is not None:
                self._cut(self._exception)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Take a head that the parser has read: of an interim answer, of the answer, or of one too many."""
        head, _ = data
        if not self._awaits_head or (head.code == 408 and head.should_close and self._is_stale()):
            self._cut(KeptConnectionLost())
            return
        if head.code >= 200 or head.code == 101:
            self._awaits_head = False
            self._should_close = head.code == 101 or self._should_close
        super().feed_data(data, size)

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """End without an answer; a kept connection that ends before an answer's first byte had ended before."""
        is_untouched = self._awaits_head and self._bytes_left == ANSWER_BYTES
        super().set_exception(KeptConnectionLost() if is_untouched and self._is_stale() else exc, *cause)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._retirement.cancel()
        self._opened.discard(self)
        self._end_body()
        super().connection_lost(exc)

    def close(self) -> None:
        self._opened.discard(self)
        self.abort()  # no receiver is waited for, in TLS either

    def _retire(self) -> None:
        self.force_close()  # after the answer that it is used for
        if self._is_idle():
            self.abort()

    def _is_idle(self) -> bool:
        return not self._awaits_head and (self._payload is None or self._payload.is_eof())

    def _is_stale(self) -> bool:
        """Return whether an end that comes now is no answer to the request: the kept connection had ended before."""
        return self._requests > 1 and self._loop.time() - self._asked_at < STALE_SECONDS

    def _end_of_head(self, data: bytes) -> int:
        """Return where the next head ends in `data`; its length if there is no blank line yet."""
        seen = self._overlap + data
        blank_line = BLANK_LINE.search(seen)
        end = len(data) if blank_line is None else blank_line.end() - len(self._overlap)
        self._overlap = seen[-LONGEST_OVERLAP:] if blank_line is None else b""
        return end

    def _cut(self, error: BaseException) -> None:
        """Read no more: what has come of the answer counts, and without its head the error does."""
        if self._awaits_head:
            self.set_exception(error)
        self._end_body()
        if self.transport is not None:
            self.transport.abort()

    def _end_body(self) -> None:
        """End a body that is cut or broken with what has come of it."""
        self.force_close()
        payload, self._payload = self._payload, None
        if payload is not None and not payload.is_eof():
            payload.feed_eof()


class Connector(aiohttp.TCPConnector):
    """Makes connections of the kind above, as many as are wanted; it asks for a name at each of them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(limit=0, use_dns_cache=False, **options)
        opened: set[Connection] = set()
        # It is called as the class is: with the loop bound, and what else aiohttp gives.
        self._factory = functools.partial(Connection, self._loop, opened, max_open())  # type: ignore[assignment]


def max_open() -> int:
    """Return how many connections may be open and still be kept: half of the files that this process may open."""
    maximum, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_OPEN if maximum == resource.RLIM_INFINITY else min(MAX_OPEN, maximum // 2)
