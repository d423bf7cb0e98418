"""One POST to a known peer, which ends in time whatever the peer does."""

import asyncio
from http import HTTPStatus
from typing import NamedTuple

import aiohttp


class NoAnswer(Exception):
    """The connection broke, the time ran out, or what came back was not HTTP."""


class Response(NamedTuple):
    """An HTTP status and the whole body."""

    status: int
    body: bytes

    @property
    def is_success(self) -> bool:
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


def post(url: str, body: bytes, headers: dict[str, str], *, seconds: float) -> Response:
    """Send a POST, and return the response if all of it comes within `seconds`. Raises NoAnswer."""
    if seconds <= 0:
        raise NoAnswer("no time left")
    return asyncio.run(_post(url, body, headers, seconds))


async def _post(url: str, body: bytes, headers: dict[str, str], seconds: float) -> Response:
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as session,
            session.post(url, data=body, headers=headers, allow_redirects=False) as response,
        ):
            return Response(response.status, await response.read())
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise NoAnswer(type(error).__name__) from error
