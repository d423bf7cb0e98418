"""The pay step: to the provider's card page, and back with a token."""

import re
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from checkout import splitting, transitions
from checkout.models import Checkout
from checkout.transitions import MerchantSuspended, NotPayable, OperationInProgress
from config.lib import request_id
from hosted_page import pages, payer, summary
from payments import money, provider
from payments.cause import Cause
from payments.models import Payment

# What a bank's refusal means for the person at the page.
DECLINES = {
    "insufficient_funds": "There is not enough money on this card.",
    "expired_card": "This card has expired.",
}
DECLINED = "Your bank declined this card."
_TOKEN = re.compile(r"[\x21-\x7e]{1,64}")


@never_cache
@require_safe
def card(request: HttpRequest) -> HttpResponse:
    """Send the lead to the provider's card page."""
    checkout = pages.checkout_of(request)
    if not payer.leads(request, checkout) or checkout.people is None:
        return pages.go(checkout)
    bound = signing.dumps([checkout.pk.hex, str(checkout.lead_id)], salt="card")
    form = provider.CardForm(
        subject=checkout.pk,
        return_url=f"{pages.absolute('pay_paid', checkout)}&{urlencode({'bound': bound})}",
        page=_card_page(checkout),
    )
    response = HttpResponseRedirect(provider.current().open_card_form(form))
    payer.remember(response, checkout, UUID(str(checkout.lead_id)))
    return response


def _card_page(checkout: Checkout) -> dict[str, Any]:
    """What the provider shows around its fields."""
    amount = money.display(checkout.amount, checkout.currency)
    return {
        "order": summary.as_json(summary.of(checkout)),
        "cancel_url_path": pages.address("pay_cancel", checkout),
        "change_split_url": pages.address("pay_split", checkout),
        "pay_label": f"Pay {amount}",
        "held_rows": _held_rows(checkout, amount),
        "notice": _decline_notice(checkout),
        "leads_to": [checkout.cancel_url, settings.CHECKOUT_PAGE_URL],
    }


def _held_rows(checkout: Checkout, amount: str) -> list[dict[str, str]]:
    people = checkout.people or 1
    if people == 1:
        return []
    yours, each = splitting.equally(checkout.amount, people)
    mates = money.display(each * (people - 1), checkout.currency)
    label = "Your mate’s share" if people == 2 else f"Your {people - 1} mates’ shares"
    return [
        {"label": "Held on your card now", "amount": amount},
        {"label": label, "amount": mates},
        {"label": "Your own part", "amount": money.display(yours, checkout.currency)},
    ]


def _decline_notice(checkout: Checkout) -> dict[str, str] | None:
    last = Payment.objects.filter(subject=checkout.pk).order_by("-created_at").first()
    if last is None or last.status != Payment.Status.DECLINED:
        return None
    title = DECLINES.get(last.decline_reason, DECLINED)
    return {"title": title, "text": "No money was taken. Try another card."}


@never_cache
@require_safe
def paid(request: HttpRequest) -> HttpResponse:
    """Come back from the provider with a card token, good once, for this checkout and this person."""
    checkout = pages.checkout_of(request)
    customer_uuid = payer.customer_of(request, checkout)
    try:
        bound = signing.loads(request.GET.get("bound", ""), salt="card", max_age=payer.LIFE * 4)
    except signing.BadSignature:
        raise Http404 from None
    if (
        customer_uuid is None
        or bound != [checkout.pk.hex, str(customer_uuid)]
        or customer_uuid != checkout.lead_id
    ):
        return pages.go(checkout)
    cause = Cause(f"customer:{customer_uuid}", request_id.current())
    try:
        transitions.authorize(checkout.pk, card_token=_card_token(request), lead=checkout.lead, cause=cause)
    except MerchantSuspended:
        context = {"heading": "This shop takes no payments now", "paragraphs": ["You paid nothing."]}
        return pages.show(request, checkout, "message", context)
    except (NotPayable, OperationInProgress):
        pass  # the page tells what is true
    return pages.go(checkout)


def _card_token(request: HttpRequest) -> str:
    """Return the token that came back; what cannot be one becomes "", which the provider declines."""
    given = request.GET.get("card_token", "")
    return given if _TOKEN.fullmatch(given) else ""
