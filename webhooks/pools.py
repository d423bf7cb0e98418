"""The connections to all receivers: made to addresses that may be reached, and kept from one POST to the next."""

import asyncio
import contextlib
import functools
import ipaddress
import resource
import socket
import ssl
import time
import weakref
from collections.abc import Callable
from typing import Any, Self

import aiohappyeyeballs
import yarl
from aiohttp.abc import AbstractResolver

from webhooks import targets
from webhooks.connections import CLOSED, Connection, KeptConnectionLost, NoAnswer, Target

NEXT_ADDRESS_SECONDS = 0.25  # that an address has for itself before the next one is tried too
MAX_IDLE = 4096
URLS = 1024  # that we know how to connect to without parsing them again

CERTIFICATE_TROUBLE = {
    9: "TLS: the certificate is not valid yet",
    10: "TLS: the certificate has expired",
    62: "TLS: the certificate is for another host",
    64: "TLS: the certificate is for another host",
}


class Pool:
    """Makes connections and keeps them; `socket_factory` sees each address first, and may refuse it."""

    def __init__(
        self,
        *,
        tls: ssl.SSLContext,
        resolver: AbstractResolver,
        socket_factory: Callable[[tuple[Any, ...]], socket.socket],
    ) -> None:
        self._tls, self._resolver, self._socket_factory = tls, resolver, socket_factory
        self._open: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._kept: dict[Target, dict[Connection, None]] = {}
        self._idle: dict[Connection, None] = {}  # all that are kept, the one that has waited longest first
        self._max_idle = max_idle()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections at once, also those in use."""
        self._is_closed = True
        for connection in list(self._open):
            connection.abort()
        await self._resolver.close()

    async def ask(self, url: str, request: bytes, due: float) -> Connection:
        """Write a whole request, and return the connection once it knows the status of the final answer.

        Whoever gets it has to `release` it. Raises NoAnswer, AddressRefused and, at `due`, TimeoutError.
        """
        target = _target(url)
        kept = self._take(target)
        if kept is not None:
            # A receiver may close a kept connection at the very moment we use it, which is not its answer. It
            # gets the request once more, over a new connection: it may have died of it, and none is kept then.
            with contextlib.suppress(KeptConnectionLost):
                await kept.ask(request, due)
                return kept
        async with asyncio.timeout(due - time.monotonic()):
            connection = await self._connect(target)
        await connection.ask(request, due)
        return connection

    def release(self, connection: Connection) -> None:
        """Keep the connection for the next request, or close it."""
        if connection.keep():
            self._kept.setdefault(connection.target, {})[connection] = None
            self._idle[connection] = None
            if len(self._idle) > self._max_idle:
                oldest = next(iter(self._idle))
                self._forget(oldest)
                oldest.abort()

    def _take(self, target: Target) -> Connection | None:
        kept = self._kept.get(target)
        while kept:
            connection, _ = kept.popitem()  # the last one: so that those that are not needed grow old
            del self._idle[connection]
            if not kept:
                del self._kept[target]
            if connection.is_fresh():
                return connection
            connection.abort()
        return None

    def _forget(self, connection: Connection) -> None:
        self._idle.pop(connection, None)
        kept = self._kept.get(connection.target, {})
        kept.pop(connection, None)
        if not kept:
            self._kept.pop(connection.target, None)

    async def _connect(self, target: Target) -> Connection:
        if self._is_closed:
            raise NoAnswer(CLOSED)
        addresses = [_address_info(address, target.port) for address in await self._addresses(target)]
        try:
            connected = await aiohappyeyeballs.start_connection(
                addresses,
                happy_eyeballs_delay=NEXT_ADDRESS_SECONDS,
                socket_factory=self._socket_factory,
            )
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(target, self._forget),
                sock=connected,
                ssl=self._tls if target.is_tls else None,
                server_hostname=target.host.rstrip(".") if target.is_tls else None,
            )
        except targets.AddressRefused:
            raise
        except ssl.SSLCertVerificationError as error:
            words = CERTIFICATE_TROUBLE.get(error.verify_code, "TLS: the certificate is not trusted")
            raise NoAnswer(words) from error
        except (ssl.SSLError, ConnectionResetError) as error:  # after TCP's own beginning, that is
            raise NoAnswer("TLS: the handshake failed") from error
        except OSError as error:
            raise NoAnswer("could not connect") from error
        self._open.add(connection)
        if self._is_closed:  # meanwhile
            connection.abort()
        return connection

    async def _addresses(self, target: Target) -> list[str]:
        if _is_literal(target.host):
            return [target.host]
        try:
            found = await self._resolver.resolve(target.host, target.port, socket.AF_UNSPEC)
        except targets.AddressRefused:
            raise
        except OSError as error:
            raise NoAnswer("the host name could not be resolved") from error
        return [result["host"] for result in found]


def max_idle() -> int:
    """Return how many connections may be kept: half of the files that this process may open."""
    maximum, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_IDLE if maximum == resource.RLIM_INFINITY else min(MAX_IDLE, maximum // 2)


@functools.lru_cache(maxsize=URLS)
def _target(url: str) -> Target:
    parsed = yarl.URL(url, encoded=True)
    host = parsed.raw_host
    if not host or (_is_literal(host) and not _is_canonical(host)):
        raise NoAnswer("the URL is not valid")
    if parsed.port is None:
        raise ValueError("a URL without a port, of a scheme that has none by itself")
    return Target(host, parsed.port, parsed.scheme == "https")


def _is_literal(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _is_canonical(host: str) -> bool:
    """Whether an address is spelled as one; the system takes 127.1 and 2130706433 for addresses, too."""
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def _address_info(address: str, port: int) -> aiohappyeyeballs.AddrInfoType:
    if ":" in address:
        return socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port, 0, 0)
    return socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)
