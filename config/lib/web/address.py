"""The caller's IP address, and the networks that rate limits count as one caller."""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest

from config.lib import crypto

_LONGEST = 64  # the maximum length of an address with brackets, zone and port


def caller_address(request: HttpRequest) -> str:
    """Return the caller's address, as the outermost of our TRUSTED_PROXY_COUNT proxies reports it.

    If that proxy sent no valid address (for example `unknown`), return the address of the nearest proxy. Rule
    limit.address.
    """
    count: int = settings.TRUSTED_PROXY_COUNT
    addresses = [part for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    written = addresses[-count] if count and len(addresses) >= count else ""
    return _bare_address(written) or _bare_address(str(request.META.get("REMOTE_ADDR", "")))


def _bare_address(written: str) -> str:
    """Return only the IP address in `ip`, `ip:port`, `[ipv6]:port` or `ipv6%zone`, or "" for any other text."""
    text = written.strip().strip('"')[:_LONGEST]
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


class Networks(NamedTuple):
    """The two networks of an address. The rate limits count each of them as one caller (rule limit.address)."""

    network: str
    """An IPv4 address, also one mapped into IPv6, or the /64 of an IPv6 address."""
    site: str
    """The /48 around that /64; "" for IPv4."""


def networks_of(address: str) -> Networks:
    """Return the networks of an address. If the text is not an address, return the text as its own network."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return Networks(address, "")
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is None:
        network, site = (ipaddress.ip_network((ip, length), strict=False) for length in (64, 48))
        return Networks(str(network), str(site))
    return Networks(str(getattr(ip, "ipv4_mapped", None) or ip), "")


def caller_digests(purpose: str, address: str) -> dict[str, list[str]]:
    """Return the digests by which rate limits count a caller's rows: a list for each column.

    Each list has one digest per lookup key. New rows get the first one. If the address is not IPv6, the
    digests for `site_digest` are empty.
    """
    found = networks_of(address)
    networks = crypto.keyed_digests(purpose, found.network)
    sites = crypto.keyed_digests(purpose, found.site) if found.site else [""] * len(networks)
    return {"address_digest": networks, "site_digest": sites}


def first_digests(digests: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the digest that a new row gets in each column."""
    return {column: found[0] for column, found in digests.items()}
