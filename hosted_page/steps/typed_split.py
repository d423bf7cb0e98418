"""Keeps the values of a split form that the lead sent after the sign-in had ended (rule sign_in.typed).

The browser stores the values, encrypted, until the lead has signed in again.
"""

import json
from typing import Any

from cryptography.fernet import InvalidToken
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.translation import ngettext

from checkout.models import Checkout
from checkout.split import split_amounts
from config.lib import crypto
from hosted_page import payer, share_bar
from hosted_page.payment_target import PaymentTarget
from hosted_page.steps.item_split import UNITS
from hosted_page.steps.split_form import BY_ITEM, EQUAL, OWN, SplitForm
from payments import money

TYPED = "typed"
FIELDS = ("split", "people", "your_name", "name", "amount")
# Maximum characters of the cookie. Of longer values, the cookie records only that they existed.
LONGEST = 3000
MAX_LETTERS = 120  # characters per field


def store_values(request: HttpRequest, response: HttpResponse, checkout: Checkout) -> None:
    """Store the typed values in the browser of a lead whose sign-in has ended.

    If the values do not fit into a cookie, store an empty dict, so that the page can say so.
    """
    units = [UNITS.format(line=number) for number in range(len(checkout.bill))]
    lists = {
        name: [text[:MAX_LETTERS] for text in request.POST.getlist(name)[: split_amounts.MAX_PEOPLE]]
        for name in (*FIELDS, *(name for name in units if name in request.POST))
    }
    sealed = _seal(checkout, lists)
    if len(sealed) > LONGEST:
        sealed = _seal(checkout, {})
    payer.set_cookie(response, payer.cookie_name(TYPED), sealed, payer.NOTICE_SECONDS)


def _seal(checkout: Checkout, lists: dict[str, list[str]]) -> str:
    return crypto.encrypt(json.dumps([checkout.pk.hex, str(checkout.lead_id), lists], ensure_ascii=False))


def typed_values(request: HttpRequest, checkout: Checkout) -> QueryDict | None:
    """Return the values that were typed for this order in this browser.

    Return None if no values are stored, or if another person has become the lead.
    """
    lists = _stored_lists(request, checkout)
    if not lists:
        return None
    typed = QueryDict(mutable=True)
    for name, texts in lists.items():
        typed.setlist(name, texts)
    return typed


def has_typed(request: HttpRequest, checkout: Checkout) -> bool:
    """Return whether values were typed for this order in this browser, even if they were too long to be stored."""
    return _stored_lists(request, checkout) is not None


def was_too_long(request: HttpRequest, checkout: Checkout) -> bool:
    """Return whether values were typed for this order in this browser, but did not fit into a cookie."""
    return _stored_lists(request, checkout) == {}


def _stored_lists(request: HttpRequest, checkout: Checkout) -> dict[str, list[str]] | None:
    sealed = request.COOKIES.get(payer.cookie_name(TYPED), "")
    try:
        checkout_hex, lead, lists = json.loads(crypto.decrypt(sealed))
    except (InvalidToken, ValueError):
        return None
    if (checkout_hex, lead) != (checkout.pk.hex, str(checkout.lead_id)):
        return None
    return dict(lists)


def delete_values(request: HttpRequest, response: HttpResponse) -> None:
    """Delete the typed values from the browser. Call this after the split is saved or the person has signed out."""
    if payer.cookie_name(TYPED) in request.COOKIES:
        response.delete_cookie(payer.cookie_name(TYPED), samesite="Lax")


def split_summary(request: HttpRequest, target: PaymentTarget) -> dict[str, Any] | None:
    """Return the bar and the sums of the lead's typed or saved split, for the sign-in page.

    With them, a lead whose sign-in has ended sees that the split is kept. Return None for a share, for an order without
    a split, and if the typed values were too long to be stored.
    """
    if target.share is not None or was_too_long(request, target.checkout):
        return None
    typed = typed_values(request, target.checkout)
    form = SplitForm(typed, target.checkout) if typed else SplitForm.from_saved(target.checkout)
    amounts = form.amounts_by_person if form.choice in (EQUAL, OWN, BY_ITEM) else []
    if len(amounts) < 2:
        return None
    currency = target.checkout.currency
    people = sum(1 for _, amount in (amounts[:-1] if form.choice == BY_ITEM else amounts) if amount)
    words = ngettext("{count} person", "{count} people", people).format(count=people)
    each = money.display_for_payer(amounts[1][1], currency) if form.choice == EQUAL else ""
    return {
        "bar": share_bar.parts(amounts),
        "people": words,
        "each": each,
        "yours": money.display_for_payer(amounts[0][1], currency),
        "mates": money.display_for_payer(sum(amount for _, amount in amounts[1:]), currency),
    }
