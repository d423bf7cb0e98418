"""Where a request comes from."""

from django.conf import settings
from django.http import HttpRequest


def of(request: HttpRequest) -> str:
    """Return the caller's address: what the outermost of our TRUSTED_PROXY_COUNT proxies saw."""
    count: int = settings.TRUSTED_PROXY_COUNT
    seen = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    if count and len(seen) >= count:
        return seen[-count]
    return str(request.META.get("REMOTE_ADDR", ""))
