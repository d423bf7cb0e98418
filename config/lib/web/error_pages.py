"""What every page is told, and the pages for what cannot be shown: each names its request."""

import sys
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from config.lib.web import request_id

RETRY_SECONDS = 5


def environment(request: HttpRequest) -> dict[str, Any]:
    """Test mode is never mistaken for live: every template knows it, where the other portal is, and its request."""
    return {
        "test_mode": settings.SANDBOX,
        "other_portal": settings.LIVE_PORTAL_URL if settings.SANDBOX else settings.SANDBOX_PORTAL_URL,
        "request_id": request_id.current(),
    }


def refused(request: HttpRequest, exception: PermissionDenied) -> HttpResponse:
    """Somebody may not see this; where that is known, who may."""
    return render(request, "403.html", {"who_may": getattr(exception, "who_may", [])}, status=403)


def broken(request: HttpRequest) -> HttpResponse:
    """The fault is ours. Asks nothing of the request, which may be what broke.

    A database that is away is a 503: whoever asks again soon, be it a proxy or a script, gets the page.
    """
    context = {"test_mode": settings.SANDBOX, "request_id": request_id.current()}
    page = HttpResponse(render_to_string("500.html", context), status=500)
    if isinstance(sys.exception(), OperationalError | InterfaceError):
        page.status_code = 503
        page["Retry-After"] = str(RETRY_SECONDS)
    return page
