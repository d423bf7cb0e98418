"""The context of every template, and the error pages 403, 413, 415 and 500. They show the request id."""

import sys
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from config.lib.web import paths, request_id
from config.lib.web.paths import PAYER_PREFIXES

RETRY_SECONDS = 5
PORTAL = "/portal"
ACCOUNTS = "/accounts/"
OPERATORS = "/admin/"
STOP_TEXTS = "/pay/stop/"  # a link that only texts contain
PREFIXES_ABOUT_TEXTS = (STOP_TEXTS, "/pay/offers/")  # payers' links that are not about paying


def template_context(request: HttpRequest) -> dict[str, Any]:
    """Return the context of every template, for example whether the service is in test mode, and the request id."""
    return {
        "test_mode": settings.SANDBOX,
        "other_portal": settings.LIVE_PORTAL_URL if settings.SANDBOX else settings.SANDBOX_PORTAL_URL,
        "request_id": request_id.current_id(),
        "is_payers": request.path.startswith(PAYER_PREFIXES),
        "is_about_texts": request.path.startswith(PREFIXES_ABOUT_TEXTS),
        "is_stop_link": request.path.startswith(STOP_TEXTS),
        "is_portals": request.path.startswith(PORTAL),
        "is_operators": request.path.startswith(OPERATORS),
    }


def show_refusal(request: HttpRequest, exception: PermissionDenied) -> HttpResponse:
    """Return the page for a refused action. The page names the roles that allow it, or the chosen merchant."""
    facts = {name: getattr(exception, name, "") for name in ("allowed_roles", "other_merchant")}
    return render(request, "403.html", facts, status=403)


def show_old_page(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return the page for a form without a valid CSRF token. It links to the payer's page that contains the form."""
    return render(request, "403_csrf.html", {"page_url": paths.payer_page(request)}, status=403)


def show_unreadable_form(request: HttpRequest, status: int) -> HttpResponse:
    """Return the page that says why a payer's form was refused: it is too long (413) or contains files (415)."""
    return HttpResponse(render_to_string(f"{status}.html", template_context(request)), status=status)


def show_internal_error(request: HttpRequest) -> HttpResponse:
    """Return the page for an internal error. Read only the request line: other parts might have caused it.

    If the database does not answer, the status is 503, so that a proxy or a script tries again soon.
    """
    context = template_context(request) | {"may_open_again": request.method == "GET"}
    page = HttpResponse(render_to_string("500.html", context), status=500)
    if isinstance(sys.exception(), OperationalError | InterfaceError):
        page.status_code = 503
        page["Retry-After"] = str(RETRY_SECONDS)
    return page
