"""Rules for the URLs and IP addresses to which webhooks can be sent (rules target.*).

The rules for URLs only give merchants an early error. The real protection is `is_allowed`, which is called again for
each new connection, with the address that is really used (webhooks/transport.py).
"""

import asyncio
import functools
import ipaddress
import re
import socket
from collections.abc import Iterable

import yarl
from aiohttp.abc import AbstractResolver, ResolveResult

from config.lib.web import hosts, http

URL_LENGTH = 2048
NAME_LENGTH = 253
RESOLVE_SECONDS = 3.0
# Maximum number of addresses of one host name. If a connection fails, aiohttp tries each of the other addresses.
MAX_ADDRESSES = 8
LOWEST_FREE_PORT = 1024

FORBIDDEN_V4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's platform services for its virtual machines
        "169.254.0.0/16",  # link-local, cloud metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/3",  # multicast, reserved, broadcast
    )
)
# IPv6 addresses outside 2000::/3 are refused, for example loopback, v4-mapped, NAT64, private and multicast.
GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
FORBIDDEN_V6 = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarking
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3ffe::/16",  # 6bone
        "3fff::/20",  # documentation
    )
)
LOOPBACK_V4, LOOPBACK_V6 = ipaddress.IPv4Network("127.0.0.0/8"), ipaddress.IPv6Address("::1")
ISATAP_INTERFACES = frozenset({0x00005EFE, 0x02005EFE})

URL_SHAPE = re.compile(r"[A-Za-z]+://(?P<authority>(?:\[[0-9A-Fa-f:.]+\])?[^/?#\[\]]*)(?:[/?][^#]*)?")
UNSAFE_CHARACTER = re.compile(r"[\x00-\x20\x7f-\xa0\\\s]")
LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
DNS_NAME = re.compile(rf"(?:{LABEL}\.)+(?=[a-z]){LABEL}")

NOT_PUBLIC = "The URL must have a publicly reachable address."
ONLY_HERE = (
    f"{NOT_PUBLIC} Only a service on your own machine (make run) accepts http://localhost. For the sandbox, use "
    "listen.py from the documentation."
)


class TargetRefused(ValueError):
    """The service refuses to send webhooks to this URL.

    The message is a sentence for the merchant. It does not contain an IP address.
    """


class AddressRefused(OSError):
    """The service must not connect to this IP address.

    This is an OSError, so that aiohttp handles it like a failed connection.
    """


def is_public(address: str) -> bool:
    """Return whether an IP address is globally reachable according to the special-purpose registries."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in network for network in FORBIDDEN_V4)
    is_isatap = (int(ip) >> 32) & 0xFFFFFFFF in ISATAP_INTERFACES
    is_special = is_isatap or any(ip in network for network in FORBIDDEN_V6)
    return ip.scope_id is None and ip in GLOBAL_V6 and not is_special


def is_loopback(address: str) -> bool:
    """Return whether `address` is an IP address in 127.0.0.0/8, or is ::1.

    From Python 3.13 on, the property `is_loopback` is also true for ::ffff:127.0.0.1, which is refused here.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return ip == LOOPBACK_V6 or ip in LOOPBACK_V4


def is_allowed(address: str, *, allow_loopback: bool) -> bool:
    """Return whether the service may connect to this IP address. Loopback addresses require `allow_loopback`."""
    return is_public(address) or (allow_loopback and is_loopback(address))


@functools.lru_cache(maxsize=1024)  # called again for every delivery
def check_url(url: str, *, allow_loopback: bool) -> str:
    """Check a URL and return its normal form. Raises TargetRefused.

    Callers must store and use only the returned URL.
    """
    if len(url) > URL_LENGTH:
        raise TargetRefused(f"The URL must have at most {URL_LENGTH} characters.")
    if UNSAFE_CHARACTER.search(url):
        raise TargetRefused("The URL must not contain a space, a backslash or a control character.")
    shape = URL_SHAPE.fullmatch(url)
    if shape is None:
        raise TargetRefused("The URL must look like https://example.com/webhooks, without a fragment.")
    if "@" in shape["authority"] or "%" in shape["authority"]:
        raise TargetRefused("The URL must not contain a user name, or an escaped character in its host name.")
    parsed = _parse_url(url)
    _check_parts(parsed, allow_loopback=allow_loopback)
    normal = str(parsed)
    if len(normal) > URL_LENGTH:
        raise TargetRefused(f"The URL must have at most {URL_LENGTH} characters after it is escaped.")
    return normal


def check_addresses(addresses: Iterable[str], *, allow_loopback: bool) -> None:
    """Raise AddressRefused unless all addresses of a host name are allowed.

    If a name has both allowed and forbidden addresses, this is treated as an attack.
    """
    if not all(is_allowed(address, allow_loopback=allow_loopback) for address in addresses):
        raise AddressRefused("address not allowed")


class GuardedResolver(AbstractResolver):
    """A resolver that refuses a host name if one of its addresses is forbidden.

    It takes at most 3 s and returns at most 8 addresses.
    """

    def __init__(self, *, allow_loopback: bool, names: AbstractResolver | None = None) -> None:
        self._allow_loopback = allow_loopback
        self._names = names or http.resolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                results = await self._names.resolve(host, port, family)
        except TimeoutError:
            raise OSError("the name servers took too long") from None
        check_addresses((result["host"] for result in results), allow_loopback=self._allow_loopback)
        return results[:MAX_ADDRESSES]

    async def close(self) -> None:
        await self._names.close()


def check_resolved_url(url: str, *, allow_loopback: bool) -> str:
    """Check a URL as in `check_url`, and also check that its host name resolves only to allowed addresses.

    Returns the URL in its normal form. Raises TargetRefused, also if the host name cannot be resolved within 3 s.
    """
    normal = check_url(url, allow_loopback=allow_loopback)
    if needs_name_resolution(normal):
        asyncio.run(_check_resolved_name(_ascii_host(normal), allow_loopback=allow_loopback))
    return normal


def needs_name_resolution(url: str) -> bool:
    """Return whether the host of this URL must be resolved. `url` must be a result of `check_url`."""
    return not is_loopback(_ascii_host(url))


def _ascii_host(url: str) -> str:
    """Return the host of a URL in ASCII, because some names that DNS allows cannot be decoded to Unicode."""
    return yarl.URL(url).raw_host or ""


async def _check_resolved_name(host: str, *, allow_loopback: bool) -> None:
    resolver = GuardedResolver(allow_loopback=allow_loopback)
    try:
        await resolver.resolve(host)
    except AddressRefused:
        raise TargetRefused(NOT_PUBLIC) from None
    except OSError:
        raise TargetRefused(
            "The URL's host name could not be resolved. Check its spelling and its DNS records."
        ) from None
    finally:
        await resolver.close()


def _parse_url(url: str) -> yarl.URL:
    try:
        parsed = yarl.URL(url)
        # A trailing dot only means that the name is fully qualified. Certificates omit it.
        return parsed.with_host((parsed.raw_host or "").removesuffix("."))
    except ValueError:
        raise TargetRefused("The URL's host name or port is not valid. Correct it.") from None


def _check_parts(url: yarl.URL, *, allow_loopback: bool) -> None:
    host, port = url.raw_host or "", url.port or 0
    is_here = host == "localhost" or is_loopback(host)
    if allow_loopback and is_here and url.scheme in ("http", "https") and port:
        return
    if is_here and not allow_loopback:
        raise TargetRefused(ONLY_HERE)
    if url.scheme != "https":
        here = f", or here with {hosts.HERE}" if allow_loopback else ""
        raise TargetRefused(f"The URL must start with https://{here}.")
    _check_name(host)
    if port != 443 and port < LOWEST_FREE_PORT:
        raise TargetRefused(f"The URL's port must be 443, or {LOWEST_FREE_PORT} or higher.")


def _check_name(host: str) -> None:
    if ":" in host or host.replace(".", "").isdigit():
        raise TargetRefused("The URL must have a host name, not an IP address.")
    if hosts.is_reserved(host):
        raise TargetRefused(NOT_PUBLIC)
    if len(host) > NAME_LENGTH or not DNS_NAME.fullmatch(host):
        raise TargetRefused("The URL's host must be a full DNS name, like shop.example.com.")
