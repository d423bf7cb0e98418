"""A client for single HTTP requests. Its time limit holds even if the server sends slowly."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import aiohttp
from aiohttp.abc import AbstractResolver


class NoAnswer(Exception):
    """Raised if the connection broke, the time ran out, or the answer was not HTTP."""


class Response(NamedTuple):
    """An HTTP status, the whole body, and the headers, whose names are case-insensitive."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def is_success(self) -> bool:
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


def resolver() -> AbstractResolver:
    """Return a DNS resolver for the running loop, with the system's settings. The caller must close it.

    Without arguments, aiohttp would share one resolver between all loops, which fails if two threads start at
    the same time.
    """
    return aiohttp.AsyncResolver(tries=None)


def post(url: str, body: bytes, headers: Mapping[str, str], *, seconds: float) -> Response:
    """Send a POST request. See `request`."""
    return request("POST", url, body, headers, seconds=seconds)


def request(
    method: str,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    seconds: float,
    largest: int | None = None,
) -> Response:
    """Send a request; return the response if all of it arrives within `seconds`. Redirects are not followed.

    Raises NoAnswer if the response does not arrive in time, or if its body has more than `largest` bytes.
    """
    if seconds <= 0:
        raise NoAnswer("no time left")
    arguments = {"method": method, "url": url, "data": body, "headers": headers}
    return asyncio.run(_send_request(arguments, seconds, largest))


async def _send_request(arguments: dict[str, Any], seconds: float, largest: int | None) -> Response:
    names = resolver()
    try:
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(resolver=names), timeout=aiohttp.ClientTimeout(total=seconds)
            ) as session,
            session.request(**arguments, allow_redirects=False) as response,
        ):
            return Response(response.status, await _read_body(response, largest), response.headers)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise NoAnswer(type(error).__name__) from error
    finally:
        await names.close()


async def _read_body(response: aiohttp.ClientResponse, largest: int | None) -> bytes:
    """Return the body. Raises NoAnswer if it is longer than `largest` bytes."""
    if largest is None:
        return await response.read()
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > largest:
            raise NoAnswer(f"more than {largest} bytes")
    return bytes(body)
