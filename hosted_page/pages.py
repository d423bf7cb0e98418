"""What the payer's views share: which checkout an address names, how a page is shown, where to go next."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from checkout import reading
from checkout.models import Checkout
from config.lib import csp
from config.lib.prepared import Prepared
from hosted_page import summary


def checkout_of(request: HttpRequest) -> Checkout:
    """Return the checkout that the address names, late ones lapsed or expired first; 404 for anything else."""
    given = request.GET.getlist("id")
    try:
        checkout_uuid = UUID(given[0]) if len(given) == 1 else None
    except ValueError:
        checkout_uuid = None
    if checkout_uuid is None:
        raise Http404
    try:
        return reading.one(_SHOWN, checkout_uuid)
    except Checkout.DoesNotExist:
        raise Http404 from None


def _shown(checkout_uuid: UUID) -> QuerySet[Checkout]:
    rows = Checkout.objects.filter(pk=checkout_uuid).select_related("merchant", "payment", "lead")
    return reading.at_once(rows)


_SHOWN = Prepared(_shown, UUID)


def show(
    request: HttpRequest,
    checkout: Checkout,
    name: str,
    context: dict[str, Any],
    *,
    status: int = 200,
    may_cancel: bool = True,
) -> HttpResponse:
    shared = {
        "order": summary.of(checkout),
        "checkout_id": checkout.pk,
        "cancel_url_path": address("pay_cancel", checkout) if may_cancel else "",
    }
    response = render(request, f"hosted_page/{name}.html", {**shared, **context}, status=status)
    csp.allow_forms_to(response, checkout.cancel_url, checkout.return_url, settings.BASE_URL)
    response["Cache-Control"] = "no-store"
    return response


def address(name: str, checkout: Checkout) -> str:
    return f"{reverse(name)}?id={checkout.pk}"


def absolute(name: str, checkout: Checkout) -> str:
    return f"{settings.CHECKOUT_PAGE_URL.removesuffix(reverse('pay'))}{address(name, checkout)}"


def go(checkout: Checkout, name: str = "pay") -> HttpResponseRedirect:
    return HttpResponseRedirect(address(name, checkout), status=303)
