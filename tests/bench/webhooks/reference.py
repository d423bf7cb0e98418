"""The reference: a bare aiohttp loop. It sends requests that are already signed, and stores no results.

`python -m tests.bench.webhooks.reference` answers lines of JSON. It uses one session, keep-alive and TLS.
"""

import asyncio
import ssl
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import aiohttp
import yarl

from tests.bench.webhooks import processes

OWN = ("host", "content-length")  # headers that aiohttp adds


class Request(NamedTuple):
    """A worker's request that the receiver has stored. It can be sent again as it is."""

    url: yarl.URL
    headers: dict[str, str]
    body: bytes


class Run:
    """A run of `count` requests, as fast as possible, with `in_flight` at a time. The middle 80 % are measured."""

    def __init__(self, requests: list[Request], count: int, in_flight: int) -> None:
        self._requests = requests
        self._count = count
        self._in_flight = in_flight
        self._sent = 0
        self._marks: list[tuple[float, float]] = []

    async def measure(self) -> dict[str, float]:
        """Return the CPU and wall seconds of one request."""
        connector = aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context())
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
            numbers = iter(range(self._count))
            await asyncio.gather(*(self._send(session, numbers) for _ in range(self._in_flight)))
        (cpu, wall), (cpu_end, wall_end) = self._marks
        measured = int(self._count * 0.9) - int(self._count * 0.1)
        return {"cpu": (cpu_end - cpu) / measured, "wall": (wall_end - wall) / measured}

    async def _send(self, session: aiohttp.ClientSession, numbers: Iterator[int]) -> None:
        requests, edges = self._requests, (int(self._count * 0.1), int(self._count * 0.9))
        for number in numbers:
            url, headers, body = requests[number % len(requests)]
            async with session.post(url, headers=headers, data=body, allow_redirects=False) as response:
                await response.read()
            self._sent += 1
            if self._sent in edges:
                self._marks.append((time.process_time(), time.monotonic()))


def send(ports: list[int], kept: list[tuple[int, str]], count: int, in_flight: int) -> dict[str, float]:
    requests = [_parsed(ports[endpoint], text.encode("latin-1")) for endpoint, text in kept]
    return asyncio.run(Run(requests, count, in_flight).measure())


def _parsed(port: int, received: bytes) -> Request:
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.split(": ", 1) for line in lines)
    headers = {name: value for name, value in pairs if name.lower() not in OWN}
    return Request(yarl.URL(f"https://localhost:{port}{first.split()[1]}"), headers, body)


VERBS: dict[str, Any] = {"send": send}

if __name__ == "__main__":
    processes.serve(VERBS)
