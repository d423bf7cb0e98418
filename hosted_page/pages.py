"""What the payer's views share: which checkout an address names, and how a page is shown (rule secret.csp)."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from checkout import reading
from checkout.models import Checkout
from config.lib import csp
from config.lib.prepared import Prepared
from hosted_page import language, summary
from hosted_page.visit import Visit


def visit_of(request: HttpRequest) -> Visit:
    """Return the visit to the checkout that the address names, late ones lapsed or expired first; 404 else."""
    given = request.GET.getlist("id")
    try:
        checkout_uuid = UUID(given[0]) if len(given) == 1 else None
    except ValueError:
        checkout_uuid = None
    if checkout_uuid is None:
        raise Http404
    try:
        return Visit(reading.one(_SHOWN, checkout_uuid))
    except Checkout.DoesNotExist:
        raise Http404 from None


def _shown(checkout_uuid: UUID) -> QuerySet[Checkout]:
    rows = Checkout.objects.filter(pk=checkout_uuid).select_related("merchant", "payment", "lead")
    return reading.at_once(rows)


_SHOWN = Prepared(_shown, UUID)


def show(
    request: HttpRequest,
    visit: Visit,
    name: str,
    context: dict[str, Any],
    *,
    status: int = 200,
    may_cancel: bool = True,
) -> HttpResponse:
    checkout = visit.checkout
    shared = {
        "order": summary.of(visit),
        "is_share": visit.share is not None,
        "languages": language.others(),
        "here": visit.address(),
        "cancel_url_path": visit.address("cancel") if may_cancel and visit.share is None else "",
    }
    response = render(request, f"hosted_page/{name}.html", {**shared, **context}, status=status)
    csp.allow_forms_to(response, checkout.cancel_url, checkout.return_url, settings.BASE_URL)
    response["Cache-Control"] = "no-store"
    return response
