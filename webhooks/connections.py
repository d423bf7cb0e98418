"""Connections to receivers, and what their bytes may do to us there: the parts below transport.py.

aiohttp makes, keeps and reads them. It loses an answer's status when nonsense follows its headers in one packet,
reads interim answers without an end, and takes bytes that lie on a kept connection for the next answer: a
connection of ours does not. Its session takes more work for a request than all the rest, so that requests are
written here.
"""

import asyncio
import functools
import re
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple, Self

import aiohttp
import yarl
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection as Acquired
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader

HEAD_BYTES = 32 * 1024  # interim answers, status line and headers together
BODY_BYTES = 64 * 1024  # on the wire: chunk sizes and trailers too
STALE_SECONDS = 1.0
KEPT_SECONDS, IDLE_SECONDS = 59.0, 30.0  # from its beginning, and without a request
READ_BYTES = 8 * 1024  # of a body, before its sender is held up
URLS = 1024  # that we know how to connect to without parsing them again
BLANK_LINE = re.compile(rb"[^\r\n]\r?\n\r?\n")
LONGEST_OVERLAP = 4  # of a blank line that comes in two packets


class HeadTooLong(aiohttp.ClientError):
    """32 KiB came, and no complete headers of a final answer."""


class KeptConnectionLost(aiohttp.ServerDisconnectedError):
    """A kept connection ended as soon as it was used again, without a byte: that is no receiver's answer."""


class Connection(ResponseHandler):
    """Reads one answer a request: once its headers are complete they count, whatever bytes come after them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._made_at = time.monotonic()
        self._requests = 0
        self._asked_at = 0.0
        self._bytes_left = 0
        self._awaits_head = False
        self._overlap = b""

    def is_connected(self) -> bool:
        """Whether it may take another request: also not when it is 60 s old (INTERFACE.md 6)."""
        return super().is_connected() and time.monotonic() - self._made_at < KEPT_SECONDS

    def set_response_params(self, **params: Any) -> None:
        """A request is about to be sent."""
        self._requests += 1
        self._asked_at = time.monotonic()
        self._bytes_left, self._awaits_head, self._overlap = HEAD_BYTES, True, b""
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        if data and self._is_idle():
            self._abort()  # nobody asked: never to be taken for the next answer
            return
        while True:
            # The parser gets headers alone: it would forget them over an error in what follows.
            end = self._end_of_head(data) if self._awaits_head else len(data)
            self._bytes_left -= end
            super().data_received(data[:end])
            data = data[end:]
            if self._exception is not None or self._bytes_left < 0:
                self._cut_short()
                return
            if not data:
                return

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """The parser has read a head: of an interim answer, of the answer, or of one too many."""
        if not self._awaits_head:
            self._abort()
            return
        if data[0].code >= HTTPStatus.OK:
            self._awaits_head, self._bytes_left = False, BODY_BYTES
        super().feed_data(data, size)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._is_stale():
            self.set_exception(KeptConnectionLost())
        self._end_body()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        return not self._awaits_head and (self._payload is None or self._payload.is_eof())

    def _is_stale(self) -> bool:
        is_untouched = self._awaits_head and self._bytes_left == HEAD_BYTES
        return self._requests > 1 and is_untouched and time.monotonic() - self._asked_at < STALE_SECONDS

    def _end_of_head(self, data: bytes) -> int:
        """Where the next head ends in `data`; all of it when there is no blank line yet."""
        seen = self._overlap + data
        blank_line = BLANK_LINE.search(seen)
        if blank_line is None:
            self._overlap = seen[-LONGEST_OVERLAP:]
            return len(data)
        end = blank_line.end() - len(self._overlap)
        self._overlap = b""
        return end

    def _cut_short(self) -> None:
        if self._exception is None and self._awaits_head:
            self.set_exception(HeadTooLong())
        self._end_body()
        self._abort()

    def _end_body(self) -> None:
        """A body that is cut or broken is what came of it."""
        self.force_close()
        payload, self._payload = self._payload, None
        if payload is not None and not payload.is_eof():
            payload.feed_eof()

    def _abort(self) -> None:
        self.force_close()
        if self.transport is not None:
            self.transport.abort()


class Reply(NamedTuple):
    """The head of a final answer, and its body as far as it has come."""

    status: int
    content: StreamReader
    acquired: Acquired

    def end(self) -> None:
        """Keep the connection for the next request; one on which something is still on its way is closed."""
        wire = self.acquired.transport
        if wire is not None and wire.get_write_buffer_size():
            self.acquired.close()
        self.acquired.release()


class Pool(aiohttp.TCPConnector):
    """Makes connections of the kind above, and keeps them from one request to the next."""

    def __init__(self, **options: Any) -> None:
        super().__init__(use_dns_cache=False, limit=0, keepalive_timeout=IDLE_SECONDS, **options)
        connection: Callable[..., ResponseHandler] = Connection
        self._factory = functools.partial(connection, loop=self._loop)
        self._target = functools.lru_cache(maxsize=URLS)(self._parsed)

    async def __aenter__(self) -> Self:
        return self

    async def ask(self, url: str, request: bytes) -> Reply:
        """Write a whole request, wait for the head of the final answer. Whoever gets a Reply has to end it.

        Raises aiohttp's ClientError, its HttpProcessingError for what is no HTTP, and the two errors above.
        """
        acquired = await self.connect(self._target(url), [], aiohttp.ClientTimeout(total=None))
        try:
            status, content = await _exchange(acquired, request)
        except BaseException:
            acquired.close()
            raise
        return Reply(status, content, acquired)

    def _parsed(self, url: str) -> aiohttp.ClientRequest:
        return aiohttp.ClientRequest("POST", yarl.URL(url, encoded=True), loop=self._loop)


async def _exchange(acquired: Acquired, request: bytes) -> tuple[int, StreamReader]:
    protocol, wire = acquired.protocol, acquired.transport
    if protocol is None:
        raise aiohttp.ServerDisconnectedError
    protocol.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=READ_BYTES)
    if wire is not None and not wire.is_closing():  # else reading tells why
        wire.write(request)
    while True:
        head, content = await protocol.read()
        if head.code >= HTTPStatus.OK or head.code == HTTPStatus.SWITCHING_PROTOCOLS:
            return head.code, content
