"""Where a request comes from."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest


def of(request: HttpRequest) -> str:
    """Return the caller's address: what the outermost of our TRUSTED_PROXY_COUNT proxies saw."""
    count: int = settings.TRUSTED_PROXY_COUNT
    seen = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    if count and len(seen) >= count:
        return seen[-count]
    return str(request.META.get("REMOTE_ADDR", ""))


def network(address: str) -> str:
    """Return what limits count as one: whoever has one IPv6 address has the 2⁶⁴ of its /64, or an IPv4 one in it."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        mapped = ip.ipv4_mapped
        return str(mapped or ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)
