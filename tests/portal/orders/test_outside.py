"""What somebody did in the bank's own dashboard stands on the order's page, with what it means."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple, TypeAlias

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from checkout import captures
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from payments import discrepancies, reconciliation
from payments.models import Discrepancy, Merchant
from payments.providers.sandbox import client as bank
from payments.providers.sandbox import notifications
from portal.models import Role
from portal.orders import order, outside
from tests import factories, mates
from tests.factories import CAUSE, make_late
from tests.outside import come_back, reimburse
from tests.portal import stage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted"), pytest.mark.rule("portal.outside")]


Words: TypeAlias = Callable[[Checkout], str]


class Case(NamedTuple):
    status: str
    kind: str
    amount: int
    title: str
    meaning: str


CASES = [
    Case(
        "authorized",
        "void",
        0,
        "The hold was released in the bank’s own",
        "Do not fulfil the order: cancel it.",
    ),
    Case("authorized", "capture", 0, "£90.00 was taken in the bank’s own", "Capture it in time, as always"),
    Case(
        "captured",
        "refund",
        1000,
        "£10.00 was given back in the bank’s own",
        "Do not refund this order yet: the bank would refuse that.",
    ),
]


def act(checkout: Checkout, kind: str, amount: int = 0, *, is_told: bool = True) -> None:
    """Somebody acts in the dashboard; the bank tells, or we read it in its books."""
    assert checkout.payment_id is not None
    bank.ask("act_in_dashboard", kind=kind, payment=checkout.payment_id, amount=amount)
    if is_told:
        notifications.send_due()
    else:
        reconciliation.compare(clock.now() - timedelta(hours=48))


@pytest.fixture
def words(acme: Merchant) -> Words:
    """The order's page as one line."""
    browser = stage.browser(stage.person(acme, Role.SUPPORT))
    return lambda checkout: re.sub(
        r"\s+", " ", browser.get(f"/portal/checkouts/{checkout.pk}").content.decode()
    )


class TestTheOrdersPage:
    @pytest.mark.parametrize("is_told", [True, False], ids=["told", "found at night"])
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
    def test_says_what_was_done_and_what_it_means(
        self, at: Callable[[str], Checkout], words: Words, case: Case, is_told: bool
    ) -> None:
        checkout = at(case.status)
        assert "own dashboard" not in words(checkout)
        act(checkout, case.kind, case.amount, is_told=is_told)
        shown = words(checkout)
        assert case.title in shown and case.meaning in shown
        whom = f'<a href="mailto:{settings.SUPPORT_EMAIL}?subject=Order%20{checkout.merchant_order_id}">'
        assert whom in shown and f'<bdi class="whole">{checkout.merchant_order_id}</bdi>.' in shown

    def test_asks_for_no_capture_where_only_a_part_was_taken(
        self, at: Callable[[str], Checkout], words: Words
    ) -> None:
        """The sandbox bank takes all or nothing; others let a person choose."""
        checkout = at("authorized")
        act(checkout, "capture")
        told = Discrepancy.objects.get(kind="outside_capture")
        Discrepancy.objects.filter(pk=told.pk).update(facts=told.facts | {"amount": 5000})
        shown = words(checkout)
        assert (
            "£50.00 was taken in the bank’s own" in shown and "a capture would not find that money" in shown
        )
        assert "Capture it in time" not in shown
        discrepancies.close(Discrepancy.objects.get().pk, note="Seen to.")
        assert "own dashboard" not in words(checkout)

    def test_says_that_a_capture_has_found_the_money(
        self, acme: Merchant, held: Checkout, words: Words
    ) -> None:
        act(held, "capture")
        captures.capture(acme, held.pk, cause=CAUSE)
        assert "nothing was taken twice" in words(held)

    def test_says_that_the_money_of_an_order_that_has_ended_goes_back(
        self, held: Checkout, words: Words
    ) -> None:
        act(held, "capture")
        make_late(held)
        assert "Do not fulfil it. We see to it that the customer gets the money back." in words(held)

    def test_offers_no_refund_until_what_was_given_back_is_booked(
        self, acme: Merchant, captured: Checkout
    ) -> None:
        browser, page = stage.browser(stage.person(acme, Role.OWNER)), f"/portal/checkouts/{captured.pk}"

        def is_offered() -> bool:
            return f'href="{page}/refund"' in browser.get(page).content.decode()

        assert is_offered()
        act(captured, "refund", 1000)
        assert not is_offered()
        shown = browser.get(page).content.decode()
        assert "£10.00 given back elsewhere" in shown
        assert re.search(
            r"Where the money is.*−£10\.00.*Still charged</strong> <span class=\"amount\">£80\.00<",
            shown,
            re.DOTALL,
        )
        assert "you can refund the remaining £80.00" in shown and "This is when we learned of it." in shown
        said = browser.get(f"{page}/refund", follow=True).content.decode()
        assert "We book that first; then you can refund the rest." in said
        discrepancies.close(Discrepancy.objects.get().pk, note="Seen to.")
        assert is_offered()

    def test_that_gives_again_what_came_back_lessens_no_refund(
        self, unpaid: Checkout, pay: Callable[..., Checkout], words: Words
    ) -> None:
        reimburse(unpaid, pay)
        come_back()
        act(unpaid, "refund", 3000)
        assert "you can refund the remaining £90.00" in words(unpaid)

    def test_of_another_order_or_merchant_says_nothing(
        self, acme: Merchant, rival: Merchant, held: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        act(held, "void")
        assert outside.told(order.read(acme, held.pk))
        other = pay(factories.checkout(acme))
        assert outside.told(order.read(acme, other.pk)) == []
        Discrepancy.objects.update(merchant=rival)
        assert outside.told(order.read(acme, held.pk)) == []

    def test_says_of_a_mates_card_that_the_order_stays(
        self, order: Checkout, shares: list[PaymentRequest], words: Words
    ) -> None:
        mates.pay(shares[0])
        mates.pump(order.pk)
        share = PaymentRequest.objects.get(pk=shares[0].pk)
        bank.ask("act_in_dashboard", kind="refund", payment=share.payment_id, amount=500)
        notifications.send_due()
        shown = words(order)
        assert "£5.00 was given back" in shown and "It was a mate’s card: the order stays as it is." in shown

    def test_costs_no_statement(self, acme: Merchant, held: Checkout) -> None:
        act(held, "void")
        read = order.read(acme, held.pk)
        with CaptureQueriesContext(connection) as asked:
            assert len(outside.told(read)) == 1
        assert len(asked) == 0
