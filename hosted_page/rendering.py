"""Renders the payer's pages, with their CSP (rule secret.csp)."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from config.lib.web import csp
from hosted_page import language, summary
from hosted_page.payment_target import PaymentTarget


def show(
    request: HttpRequest, target: PaymentTarget, name: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Return a page of the hosted page about a target; `context` goes before what every page has."""
    whole = _around(target) | context
    response = render(request, f"hosted_page/{name}.html", whole, status=status)
    csp.allow_forms_to(response, target.checkout.cancel_url, target.checkout.return_url, settings.BASE_URL)
    response["Cache-Control"] = "no-store"
    return response


def show_status(
    request: HttpRequest, target: PaymentTarget, context: dict[str, Any], *, is_refused: bool
) -> HttpResponse:
    """Return the status page: for htmx the part that changes, else the whole page."""
    name = "_status" if wants_part(request) else "status"
    return show(request, target, name, context, status=422 if is_refused else 200)


def wants_part(request: HttpRequest) -> bool:
    """Return whether the status page asks for its part that changes."""
    return request.headers.get("HX-Request") == "true"


def reload() -> HttpResponse:
    """Have the status page load its address anew, because there is no status to show any more."""
    return HttpResponse(headers={"HX-Refresh": "true"})


def _around(target: PaymentTarget) -> dict[str, Any]:
    return {
        "order": summary.of(target),
        "is_share": target.share is not None,
        "languages": language.others(),
        "here": target.address(),
        "cancel_url_path": target.address("cancel") if target.share is None else "",
    }
