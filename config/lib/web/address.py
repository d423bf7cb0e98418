"""The caller's IP address, and what limits count as one caller."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest

_LONGEST = 64  # characters of an address with brackets, zone and port


def of(request: HttpRequest) -> str:
    """Return the caller's address: what the outermost of our TRUSTED_PROXY_COUNT proxies saw.

    If that proxy does not know it (`unknown`, or no address), it is the nearest proxy's.
    Rule limit.address.
    """
    count: int = settings.TRUSTED_PROXY_COUNT
    seen = [part for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    written = seen[-count] if count and len(seen) >= count else ""
    return _parsed(written) or _parsed(str(request.META.get("REMOTE_ADDR", "")))


def _parsed(written: str) -> str:
    """Return the bare address of `ip`, `ip:port`, `[ipv6]:port` or `ipv6%zone`, "" for anything else."""
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


def network(address: str) -> str:
    """Return what limits count as one caller: an IPv4 address (also mapped into IPv6), or an IPv6 address's /64."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        mapped = ip.ipv4_mapped
        return str(mapped or ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)
