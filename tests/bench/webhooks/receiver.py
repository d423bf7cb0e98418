"""A receiver of webhooks with TLS and HTTP/1.1 keep-alive, which uses little CPU time.

`python -m tests.bench.webhooks.receiver <certificate> <key>` answers lines of JSON. Each endpoint has its own
port, because merchants' endpoints are on different hosts.
"""

import asyncio
import gc
import json
import ssl
import sys
import time
from functools import partial
from typing import Any

EVENT_ID = b"X-Service-Event-Id: "
LENGTH = b"Content-Length: "
ID_BYTES = 36
HEAD_END = b"\r\n\r\n"


class Endpoint:
    """One merchant's endpoint: how it answers, and the connections on which a request waits for an answer."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.port = 0
        self.answer = _answer(200)
        self.seconds = 0.0
        self.max_in_flight = 0
        self.waiting: set[Connection] = set()

    def behave(self, status: int, seconds: float) -> None:
        """Set the answer to future requests. Send it immediately to requests that are waiting."""
        self.answer, self.seconds = _answer(status), seconds
        for connection in list(self.waiting):
            connection.answer()


class Log:
    """The requests that arrived: event, time of the first byte (ns since the epoch), and number of the endpoint."""

    def __init__(self) -> None:
        self.arrivals: list[tuple[str, int, int]] = []
        self.kept: list[tuple[int, bytes]] = []
        self.keep = 0

    def reset(self, keep: int) -> None:
        """Empty the log. Store the complete text of the next `keep` requests."""
        self.arrivals, self.kept, self.keep = [], [], keep


class Connection(asyncio.Protocol):
    """A keep-alive connection, which carries one request after another."""

    def __init__(self, endpoint: Endpoint, log: Log) -> None:
        self._endpoint, self._log = endpoint, log
        self._received = b""
        self._first_byte_at = 0
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, chunk: bytes) -> None:
        if not self._received:
            self._first_byte_at = time.time_ns()
        self._received += chunk
        head = self._received.find(HEAD_END)
        if head < 0:
            return
        at = self._received.index(LENGTH, 0, head) + len(LENGTH)
        end = head + len(HEAD_END) + int(self._received[at : self._received.index(b"\r", at)])
        if len(self._received) >= end:
            request, self._received = self._received[:end], self._received[end:]
            self._take(request)

    def connection_lost(self, _: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._endpoint.waiting.discard(self)

    def answer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._endpoint.waiting.discard(self)
        self._transport.write(self._endpoint.answer)

    def _take(self, request: bytes) -> None:
        endpoint, log = self._endpoint, self._log
        at = request.index(EVENT_ID) + len(EVENT_ID)
        event_id = request[at : at + ID_BYTES].decode()
        log.arrivals.append((event_id, self._first_byte_at, endpoint.number))
        if len(log.kept) < log.keep:
            log.kept.append((endpoint.number, request))
        endpoint.waiting.add(self)
        endpoint.max_in_flight = max(endpoint.max_in_flight, len(endpoint.waiting))
        if endpoint.seconds:
            self._timer = asyncio.get_running_loop().call_later(endpoint.seconds, self.answer)
        else:
            self.answer()


class Receiver:
    """All endpoints in this process, and the functions that `Clerk.ask` can call."""

    def __init__(self, certificate: str, key: str) -> None:
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate, key)
        self._log = Log()
        self._endpoints: list[Endpoint] = []

    async def open(self, count: int) -> list[int]:
        """Open `count` more endpoints. Return the ports of all endpoints."""
        for _ in range(count):
            endpoint = Endpoint(len(self._endpoints))
            server = await asyncio.get_running_loop().create_server(
                partial(Connection, endpoint, self._log),
                "127.0.0.1",
                0,
                ssl=self._tls,
                backlog=1024,
            )
            endpoint.port = server.sockets[0].getsockname()[1]
            self._endpoints.append(endpoint)
        return [endpoint.port for endpoint in self._endpoints]

    async def behave(self, endpoint: int, status: int, seconds: float) -> None:
        self._endpoints[endpoint].behave(status, seconds)

    async def calm(self) -> None:
        """Let every endpoint answer 200 without delay."""
        for endpoint in self._endpoints:
            endpoint.behave(200, 0.0)

    async def reset(self, keep: int = 0) -> None:
        self._log.reset(keep)
        for endpoint in self._endpoints:
            endpoint.max_in_flight = len(endpoint.waiting)

    async def count(self) -> int:
        return len(self._log.arrivals)

    async def arrivals(self) -> list[tuple[str, int, int]]:
        return self._log.arrivals

    async def kept(self) -> list[tuple[int, str]]:
        return [(number, request.decode("latin-1")) for number, request in self._log.kept]

    async def max_in_flight(self, endpoint: int) -> int:
        return self._endpoints[endpoint].max_in_flight


async def main(certificate: str, key: str) -> None:
    """Serve the endpoints. Answer `Clerk.ask` on standard output until standard input ends."""
    receiver = Receiver(certificate, key)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        verb, asked = json.loads(line)
        answer: Any = await getattr(receiver, verb)(**asked)
        print(json.dumps(answer), flush=True)


def _answer(status: int) -> bytes:
    return f"HTTP/1.1 {status} So\r\nContent-Length: 0\r\n\r\n".encode()


if __name__ == "__main__":
    gc.disable()  # otherwise, a pause of the receiver would count as a delay of the service
    asyncio.run(main(*sys.argv[1:]))
