"""The context of every template, and the pages of errors 403, 413, 415 and 500, each of which names its request."""

import sys
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from config.lib.web import request_id
from config.lib.web.page_middleware import PAYERS

RETRY_SECONDS = 5
PORTAL = "/portal"


def environment(request: HttpRequest) -> dict[str, Any]:
    """Return what every template knows: whether it is test mode, where the other portal is, and the request id."""
    return {
        "test_mode": settings.SANDBOX,
        "other_portal": settings.LIVE_PORTAL_URL if settings.SANDBOX else settings.SANDBOX_PORTAL_URL,
        "request_id": request_id.current(),
        "is_payers": request.path.startswith(PAYERS),
        "is_portals": request.path.startswith(PORTAL),
    }


def refused(request: HttpRequest, exception: PermissionDenied) -> HttpResponse:
    """Return the page for a refused action. It says which roles may act, or which merchant was chosen since."""
    facts = {name: getattr(exception, name, "") for name in ("who_may", "other_merchant")}
    return render(request, "403.html", facts, status=403)


def unread(request: HttpRequest, status: int) -> HttpResponse:
    """Return the page that says why a payer's form is not read: 413, it is too long, or 415, it has files."""
    return HttpResponse(render_to_string(f"{status}.html", environment(request)), status=status)


def broken(request: HttpRequest) -> HttpResponse:
    """Return the page for a fault of ours, using little of the request, which may be what broke: no more than its line.

    A database that is away makes it a 503, after which a proxy or a script asks again soon.
    """
    context = environment(request) | {"may_open_again": request.method == "GET"}
    page = HttpResponse(render_to_string("500.html", context), status=500)
    if isinstance(sys.exception(), OperationalError | InterfaceError):
        page.status_code = 503
        page["Retry-After"] = str(RETRY_SECONDS)
    return page
