"""Shows the marketing box on a page, and saves the payer's choice."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from checkout.models import Customer
from hosted_page import payer, prefill
from hosted_page.models import OptIn
from hosted_page.opt_in import consent
from hosted_page.payment_target import PaymentTarget
from hosted_page.steps.split_form import clean_name

SAVED = "saved"  # query parameter of the page after an opt-in was saved


def box_context(
    request: HttpRequest, target: PaymentTarget, errors: Mapping[str, str] | None = None
) -> dict[str, Any] | None:
    """Return the contents of the box, or None if the merchant has turned opt-in off.

    If a form had errors, `errors` is what `save_tick` returned for it.
    """
    merchant = target.checkout.merchant
    if not merchant.opt_in_enabled:
        return None
    text = consent.wording(merchant)
    asks_name = not (target.share is None and _has_name(request, target))
    return {
        "action": target.address("opt_in"),
        "words": text.text,
        "version": text.version,
        "is_saved": SAVED in request.GET,
        "asks_name": asks_name,
        "name": clean_name(prefill.prefilled_name(target)) if asks_name and _is_lead(request, target) else "",
        "is_alone": False,
        # The box is never ticked in advance. It is only ticked if the payer ticked it, and the form had a
        # different error.
        "is_ticked": bool(errors) and "error_box" not in (errors or {}),
        **dict.fromkeys(("email", "error", "error_box"), ""),
        **(errors or {}),
    }


def save_tick(request: HttpRequest, target: PaymentTarget, placement: str = "") -> dict[str, str]:
    """Save an opt-in. Return {} if it was saved, otherwise the errors and the typed values.

    If `placement` is "", the box was on the success page or on the page of a share's pay link.
    """
    name = clean_name(request.POST.get("name", ""))
    typed = {"email": request.POST.get("email", "")[: consent.MAX_EMAIL], "name": name}
    if request.POST.get("opt_in") != "yes":
        return {"error_box": _("Tick the box to get offers, or leave it empty. Offers are optional.")} | typed
    try:
        email = consent.parse_email(request.POST.get("email", ""))
        person = None if placement else _signed_in_person(request, target)
        default = OptIn.Placement.PAY_LINK if target.share else OptIn.Placement.SUCCESS_PAGE
        text = consent.text_of_version(target.checkout.merchant, request.POST.get("version", ""))
        consent.record_opt_in(
            target,
            person=person,
            has_proven=payer.is_proven(request, target.subject),
            name=name,
            email=email,
            placement=placement or default,
            text=text,
        )
    except consent.InvalidEmail:
        return {"error": _("Enter an e\N{NON-BREAKING HYPHEN}mail address, such as lea@example.com.")} | typed
    except consent.TooManyTicks:
        words = _("No more sign-ups are possible with this order. Earlier sign-ups still count.")
        return {"error_box": words} | typed
    return {}


def _has_name(request: HttpRequest, target: PaymentTarget) -> bool:
    lead = target.checkout.lead
    return bool(lead and lead.name) and _is_lead(request, target)


def _is_lead(request: HttpRequest, target: PaymentTarget) -> bool:
    person = payer.customer_of(request, target.subject) if target.share is None else None
    return person is not None and person == target.checkout.lead_id


def _signed_in_person(request: HttpRequest, target: PaymentTarget) -> Customer | None:
    """Return the person who is signed in to this order or share, or None if no person is signed in."""
    customer_uuid = payer.customer_of(request, target.subject)
    return Customer.objects.filter(pk=customer_uuid, erased_at=None).first() if customer_uuid else None
