"""The opt-in box on a page: what it shows, and what a tick on it does."""

from typing import Any

from django.http import HttpRequest, HttpResponseRedirect
from django.utils.translation import gettext as _

from checkout.models import Customer
from hosted_page import opt_in, payer
from hosted_page.forms import clean_name
from hosted_page.models import OptIn
from hosted_page.visit import Visit

SAVED = "saved"  # a query that the page after a tick has


def on(request: HttpRequest, visit: Visit) -> dict[str, Any] | None:
    """Return what the box shows, None where the merchant has it off."""
    merchant = visit.checkout.merchant
    if not merchant.opt_in_enabled:
        return None
    text = opt_in.wording(merchant)
    return {
        "action": visit.address("opt_in"),
        "words": text.text,
        "version": text.version,
        "is_saved": SAVED in request.GET,
        "asks_name": not (visit.share is None and _person_is_named(request, visit)),
    }


def saved(path: str) -> HttpResponseRedirect:
    """Go back to a page of nothing but the box, which says so."""
    return HttpResponseRedirect(f"{path}?{SAVED}=1", status=303)


def take(request: HttpRequest, visit: Visit, placement: str = "") -> dict[str, str]:
    """Take a tick; return what is wrong with it, and what was typed, or nothing.

    Without a `placement` it stands on the success page, or at the pay link of a share.
    """
    name = clean_name(request.POST.get("name", ""))
    typed = {"email": request.POST.get("email", "")[: opt_in.MOST_EMAIL], "name": name}
    if request.POST.get("opt_in") != "yes":
        return {"error_box": _("Tick the box first, or leave it: it is not needed.")} | typed
    try:
        email = opt_in.parse_email(request.POST.get("email", ""))
        person = None if placement else _person(request, visit)
        own = OptIn.Placement.PAY_LINK if visit.share else OptIn.Placement.SUCCESS_PAGE
        text = opt_in.shown(visit.checkout.merchant, request.POST.get("version", ""))
        opt_in.tick(visit, person=person, name=name, email=email, placement=placement or own, text=text)
    except opt_in.InvalidEmail:
        return {"error": _("Enter an e-mail address, such as lea@example.com.")} | typed
    except opt_in.TooManyTicks:
        return {"error_box": _("This order has had too many. What you saved before stands.")} | typed
    return {}


def _person_is_named(request: HttpRequest, visit: Visit) -> bool:
    lead = visit.checkout.lead
    return bool(lead and lead.name) and payer.customer_of(request, visit.subject) == visit.checkout.lead_id


def _person(request: HttpRequest, visit: Visit) -> Customer | None:
    """Who is signed in here, if anybody is."""
    customer_uuid = payer.customer_of(request, visit.subject)
    return Customer.objects.get(pk=customer_uuid) if customer_uuid else None
