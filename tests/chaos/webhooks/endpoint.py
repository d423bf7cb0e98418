"""A merchant's webhook endpoint, which runs on asyncio in a thread of the test. It stores every POST."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus

from webhooks import signing


@dataclass(frozen=True)
class Post:
    """A POST that has arrived."""

    event_id: str
    event_type: str
    attempt: int
    signed_at: int  # the Unix time in the signed headers
    arrived_at: float
    body: bytes


@dataclass
class Endpoint:
    """An endpoint that verifies each POST, waits, and then responds with the status that `status` returns.

    It waits for `seconds`, and after that for as long as `holds` returns true.
    """

    url: str = ""
    secret: str = ""
    seconds: float = 0.0
    status: Callable[[Post], int] = lambda post: HTTPStatus.OK
    holds: Callable[[Post], bool] = lambda post: False
    posts: list[Post] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    at_once: int = 0  # open requests
    max_at_once: int = 0

    def hold(self, which: Callable[[Post], bool] = lambda post: True) -> None:
        """Delay the responses to matching POSTs until `release` is called."""
        self.holds = which

    def release(self) -> None:
        self.holds = lambda post: False

    def seen(self) -> list[tuple[str, int]]:
        """Return the event id and attempt number of each POST that has arrived so far."""
        return [(post.event_id, post.attempt) for post in list(self.posts)]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while True:
                    await self._serve_one(reader, writer)
        finally:
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        headers = dict(line.split(": ", 1) for line in head.strip().split("\r\n")[1:])
        body = await reader.readexactly(int(headers["Content-Length"]))
        post = self._kept(headers, body)
        self.at_once += 1
        self.max_at_once = max(self.max_at_once, self.at_once)
        try:
            await self._wait(post, reader)
        finally:
            # Stop counting this request before the response is sent, because the sender can send its next
            # request as soon as it has the response.
            self.at_once -= 1
        writer.write(f"HTTP/1.1 {self.status(post)} As told\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()

    def _kept(self, headers: dict[str, str], body: bytes) -> Post:
        signed_at = int(headers["X-Service-Timestamp"])
        post = Post(
            headers["X-Service-Event-Id"],
            headers["X-Service-Event-Type"],
            int(headers["X-Service-Delivery-Attempt"]),
            signed_at,
            time.time(),
            body,
        )
        try:
            signing.verify(headers.get("X-Service-Signature"), body, [self.secret], int(post.arrived_at))
        except signing.VerificationError as error:
            self.refused.append(error.reason)
        self.posts.append(post)
        return post

    async def _wait(self, post: Post, reader: asyncio.StreamReader) -> None:
        """Wait until the response is due. Raise IncompleteReadError if the sender disconnects earlier."""
        # The sender sends no bytes before the response, so this read ends early only if the sender
        # disconnects.
        gone = asyncio.ensure_future(reader.readexactly(1))
        try:
            await asyncio.wait([gone], timeout=self.seconds)
            while self.holds(post) and not gone.done():
                await asyncio.wait([gone], timeout=0.02)
            if gone.done():
                gone.result()
        finally:
            gone.cancel()
            await asyncio.wait([gone])


@contextmanager
def listening(count: int = 1) -> Iterator[list[Endpoint]]:
    """Run `count` endpoints on 127.0.0.1 for the duration of the block."""
    endpoints = [Endpoint() for _ in range(count)]
    are_up = threading.Event()
    loop, is_over = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        for endpoint in endpoints:
            server = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0)
            endpoint.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hooks"
        are_up.set()
        await is_over.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())  # at the end, the runner also cancels the tasks of open connections

    thread = threading.Thread(target=run, name="endpoints", daemon=True)
    thread.start()
    are_up.wait()
    try:
        yield endpoints
    finally:
        loop.call_soon_threadsafe(is_over.set)
        thread.join()
