"""One connection to a receiver, and what its bytes may do to us there.

llhttp parses the answers. What counts of them, and how long a connection lives, is decided here.
"""

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple, cast

import httptools

HEAD_BYTES = 32 * 1024  # interim answers, status line and headers together
BODY_BYTES = 16 * 1024  # on the wire, besides what comes with the head: chunk sizes and trailers too
STALE_SECONDS = 0.5  # a receiver's close that crosses our request arrives sooner
# From its beginning (rule target.each_connection), and without a request.
KEPT_SECONDS, IDLE_SECONDS = 59.0, 30.0
CLOSED = "the connection was closed before an answer"


class NoAnswer(Exception):
    """There is no answer; its text says why, in words that never name an address."""


class KeptConnectionLost(NoAnswer):
    """A kept connection ended as it was used again, without an answer or with a 408 to nobody's request."""


class Target(NamedTuple):
    """Where a connection leads; one that is kept serves all URLs with the same target."""

    host: str
    port: int
    is_tls: bool


class Connection(asyncio.Protocol):
    """Writes a request, reads one answer to it, and may then be kept for the next.

    Once the head of the final answer is complete it counts, whatever bytes come after it.
    """

    def __init__(self, target: Target, on_lost: Callable[["Connection"], None]) -> None:
        self.target = target
        self.status = 0  # of the final answer; 0 until its head is complete
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        # Lines may end in LF alone, and nothing else is excused: lenient headers would hold NUL, too.
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
        self._wire: asyncio.Transport
        self._waiter: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._rings_at = self._due = 0.0
        self._made_at = time.monotonic()
        self._asked_at = 0.0
        self._was_kept = False
        self._body = bytearray()
        self._bytes_left = 0
        self._is_ended = True  # nothing more is expected: no request yet, or all of its answer
        self._is_clean = False  # it may take another request, as far as the answer goes

    async def ask(self, request: bytes, due: float) -> None:
        """Write a whole request, wait for the head of the final answer, until `due` at the latest.

        Raises NoAnswer and TimeoutError; the connection is closed then.
        """
        if self._wire.is_closing():
            raise NoAnswer(CLOSED)
        self.status, self._body, self._bytes_left = 0, bytearray(), HEAD_BYTES
        self._is_ended = self._is_clean = False
        self._asked_at = time.monotonic()
        self._wire.write(request)
        await self._wait(due)

    async def read(self, due: float) -> bytes:
        """The beginning of the body, as far as it has come at `due`; what is cut or broken ends there."""
        if not self._is_ended:
            await self._wait(due)
        return bytes(self._body)

    def keep(self) -> bool:
        """Whether it takes another request, soon: it watches over itself until then. If not, it is closed."""
        now = time.monotonic()
        due = min(now + IDLE_SECONDS, self._made_at + KEPT_SECONDS)
        # Not while a part of the request is on its way: it would be in the way of the next one.
        if self._is_clean and due > now and not self._wire.get_write_buffer_size():
            self._was_kept = True
            self._watch(due)
            return True
        self.abort()
        return False

    def is_fresh(self) -> bool:
        """Whether it can be used again, after it was kept."""
        return time.monotonic() < self._due and not self._wire.is_closing()

    def abort(self) -> None:
        """Close it at once, whatever it is doing."""
        self._fail(NoAnswer(CLOSED))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._is_ended:
            self.abort()  # nobody asked: never to be taken for the next answer
            return
        try:
            while data and self._bytes_left:
                part, data = data[: self._bytes_left], data[self._bytes_left :]
                self._bytes_left -= len(part)
                self._parser.feed_data(part)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(NoAnswer("the answer was not valid HTTP"))
            return
        if data:
            self._fail(NoAnswer("the answer's headers are too long"))  # or its body is, and that is no error

    def connection_lost(self, exc: Exception | None) -> None:
        is_untouched = not self._is_ended and self._bytes_left == HEAD_BYTES
        self._fail(KeptConnectionLost() if is_untouched and self._is_stale() else NoAnswer(CLOSED))
        if self._alarm is not None:
            self._alarm.cancel()
        del self._parser  # and with it the circle of its callbacks
        self._on_lost(self)

    def on_message_begin(self) -> None:
        if self._is_ended:
            self._is_clean = False  # something follows the answer

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status == 408 and self._is_stale() and not self._parser.should_keep_alive():
            self._fail(KeptConnectionLost())
        if not self._is_ended and (status >= 200 or status == 101):
            self.status, self._bytes_left = status, BODY_BYTES
            self._wake()

    def on_body(self, body: bytes) -> None:
        if self.status and not self._is_ended:
            self._body += body

    def on_message_complete(self) -> None:
        if self.status and not self._is_ended:
            self._is_ended = True
            self._is_clean = self._parser.should_keep_alive()
            self._wake()

    async def _wait(self, due: float) -> None:
        self._waiter = self._loop.create_future()
        self._watch(due)
        try:
            await self._waiter
        except BaseException:
            self.abort()
            raise

    def _wake(self, error: Exception | None = None) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if error is not None:
            self._waiter.set_exception(error)
        else:
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        """No more is read: what has come of the answer counts, and without its head there is the error."""
        self._is_ended, self._is_clean = True, False
        self._wire.abort()
        self._wake(None if self.status else error)

    def _is_stale(self) -> bool:
        """Whether an end that comes now is no answer to the request: what was kept had ended before."""
        return self._was_kept and time.monotonic() - self._asked_at < STALE_SECONDS

    def _watch(self, due: float) -> None:
        """Be closed at `due`. One alarm lasts for many requests: it is set anew when it would ring too late."""
        self._due = due
        if self._alarm is None or due < self._rings_at:
            if self._alarm is not None:
                self._alarm.cancel()
            self._rings_at = due
            self._alarm = self._loop.call_later(max(0.0, due - time.monotonic()), self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if time.monotonic() < self._due:
            self._watch(self._due)
        else:
            self._fail(TimeoutError())
