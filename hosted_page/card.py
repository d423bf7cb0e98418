"""The pay step: to the provider's card page, and back with a token."""

import re
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from checkout import finishing, splitting, transitions
from checkout.models import Checkout
from checkout.transitions import NotPayable, OperationInProgress
from config.lib import request_id
from hosted_page import pages, payer, summary
from payments import money, provider
from payments.cause import Cause
from payments.models import Payment
from payments.provider import CardUse, ProviderUnreachable, Verdict
from payments.seats import ProviderBusy, Seat
from payments.switches import AllStopped, MerchantSuspended

# What a bank's refusal means for the person at the page.
DECLINES = {
    "insufficient_funds": "There is not enough money on this card.",
    "expired_card": "This card has expired.",
    "challenge_failed": "You did not confirm this payment with your bank.",
    "challenge_expired": "Your bank did not hear from you in time.",
    "never_arrived": "Your bank did not answer.",
}
DECLINED = "Your bank declined this card."
# Here the card itself may be good.
SAME_CARD_MAY_DO = {"challenge_failed", "challenge_expired", "never_arrived"}
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
    try:
        with Seat() as seat:
            seat.take()
            response = HttpResponseRedirect(provider.current().open_card_form(form))
    except (ProviderBusy, ProviderUnreachable):
        return _busy(request, checkout)
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
    if last is None or not last.decline_reason or last.decline_reason == "another_card":
        return None
    what_next = (
        "Try again, or use another card." if last.decline_reason in SAME_CARD_MAY_DO else "Try another card."
    )
    title = DECLINES.get(last.decline_reason, DECLINED)
    return {"title": title, "text": f"No money was taken. {what_next}"}


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
    token = _card_token(request)
    if Payment.objects.filter(subject=checkout.pk, card_token=token).exists():
        return pages.go(checkout)  # a reload: the token has been tried, and the page tells what came of it
    cause = Cause(f"customer:{customer_uuid}", request_id.current())
    try:
        card = CardUse(token, return_url=pages.absolute("pay_confirmed", checkout))
        paid = transitions.authorize(checkout.pk, card=card, lead=checkout.lead, cause=cause)
    except (MerchantSuspended, AllStopped):
        context = {"heading": "This shop takes no payments now", "paragraphs": ["You paid nothing."]}
        return pages.show(request, checkout, "message", context)
    except ProviderBusy:
        return _busy(request, checkout)
    except (NotPayable, OperationInProgress):
        return pages.go(checkout)  # the page tells what is true
    if paid.verdict == Verdict.NEEDS_ACTION:
        return HttpResponseRedirect(paid.action_url, status=303)
    return pages.go(checkout)


def _busy(request: HttpRequest, checkout: Checkout) -> HttpResponse:
    """Nothing was begun, and the token is still good: the same address is the way to try again."""
    context = {
        "heading": "The bank is slow just now",
        "paragraphs": ["You paid nothing yet. Try again in a moment."],
        "link": {"href": request.get_full_path(), "label": "Try again"},
    }
    return pages.show(request, checkout, "message", context, status=503)


@never_cache
@require_safe
def confirmed(request: HttpRequest) -> HttpResponse:
    """Come back from the bank's question: ask the bank at once what came of it."""
    checkout = pages.checkout_of(request)
    if payer.leads(request, checkout):
        finishing.finish_now(checkout.pk)
    return pages.go(checkout)


@require_POST
def another(request: HttpRequest) -> HttpResponse:
    """Let the card go that the bank is silent about, or asks about, and go back to the card page."""
    checkout = pages.checkout_of(request)
    if payer.leads(request, checkout):
        transitions.use_another_card(checkout.pk)
    return pages.go(checkout)


def _card_token(request: HttpRequest) -> str:
    """Return the token that came back; what cannot be one becomes "", which the provider declines."""
    given = request.GET.get("card_token", "")
    return given if _TOKEN.fullmatch(given) else ""
