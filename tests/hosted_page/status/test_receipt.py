"""Receipts: the amount, the shop, the time and the card of a payment."""

import re

import pytest

from checkout import captures
from checkout.models import Checkout
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer, words

pytestmark = [pytest.mark.django_db, pytest.mark.rule("page.receipt")]


def receipt(page: str) -> list[str]:
    """Return the texts on a page's receipt, in the order in which the page shows them."""
    part = page.partition('class="part receipt"')[2].partition("</section>")[0]
    part = re.sub(r'<span class="together">([^<]*,)</span>', r"\1", part)  # an unbreakable date
    return [text.strip() for text in re.findall(r">([^<>]+)<", part) if text.strip()]


def test_a_receipt_names_shop_item_time_card_and_total(lea: Payer) -> None:
    lea.pay()
    captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
    page = words(lea.get())
    said = receipt(page)
    item = lea.checkout.bill[0]
    title = f"{item.quantity} × {item.name}" if item.quantity > 1 else item.name
    assert said[:7] == ["Receipt", "Paid to", "Acme Tickets", "For", title, "Order A-20417", "When"]
    assert re.fullmatch(r"\d{1,2} \w+ 20\d\d, \d\d:\d\d:\d\d", said[7])
    assert said[8] == "London time (GMT)" or said[8] == "London time (BST)"
    assert said[9:] == [
        *("With", "Visa ending 4242", "Paid", "£90.00", "Print"),
        *("Text it to", "•••• 0123"),
    ]
    assert page.index('id="return"') < page.index("receipt-title")
    assert receipt(words(Payer(lea.checkout).get())) == []


def test_a_receipt_is_above_the_opt_in_box(lea: Payer) -> None:
    lea.checkout.merchant.opt_in_enabled = True
    lea.checkout.merchant.save()
    lea.pay()
    captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
    page = words(lea.get())
    assert page.index("receipt-title") < page.index("opt-in-title")


def test_a_receipt_of_a_share_is_for_the_mates_payment_only(finn: Mate, order: Checkout) -> None:
    finn.pay()
    mates.pump(order.pk)
    said = receipt(words(finn.get()))
    title = order.bill[0].name
    assert said[:7] == [
        *("Receipt", "Paid to", "Acme Tickets, for Lea", "For"),
        *(f"Your share of {title}", "Lea’s order A-20417", "When"),
    ]
    assert said[9:] == [
        *("With", "Mastercard ending 4444", "Paid", "£20.00", "Print"),
        *("Text it to", "•••• 0456"),
    ]
    assert receipt(words(Mate(finn.share).get())) == []
