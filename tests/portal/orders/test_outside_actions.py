"""Actions in the bank's own dashboard. The order's page shows each action and explains it."""

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from checkout import captures, refunds
from checkout.models import Checkout, PaymentRequest
from checkout.proof import ledger_proof
from payments.discrepancies import kinds, reporting
from payments.inquiring import reconciliation
from payments.models import Discrepancy, Merchant
from payments.providers.sandbox import client as bank
from payments.providers.sandbox.models import BankNotification
from portal.models import Role
from portal.orders import order, outside_actions
from tests import factories, mates
from tests.factories import CAUSE, make_late
from tests.outside import hear, refund_outside
from tests.portal import stage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted"), pytest.mark.rule("portal.outside")]


Words: TypeAlias = Callable[[Checkout], str]


class Case(NamedTuple):
    status: str
    kind: str
    title: str
    meaning: str


CASES = [
    Case(
        "authorized",
        "void",
        "A hold was released outside this service",
        "Do not fulfil the order. Cancel it.",
    ),
    Case(
        "authorized",
        "capture",
        "A capture was made outside this service: £90.00",
        "Capture it in time as usual",
    ),
]


def act_in_dashboard(checkout: Checkout, kind: str, *, is_notified: bool = True) -> None:
    """Simulate an action of this kind in the bank's dashboard.

    With `is_notified`, the bank notifies the service. Otherwise, the reconciliation finds the action.
    """
    assert checkout.payment_id is not None
    bank.call_bank("act_in_dashboard", kind=kind, payment=checkout.payment_id, amount=0)
    if not is_notified:
        BankNotification.objects.update(due_at=None)
        reconciliation.run()
    hear()


@pytest.fixture
def words(acme: Merchant) -> Words:
    """Return a function that returns the text of an order's page as one line."""
    browser = stage.browser(stage.person(acme, Role.SUPPORT))
    return lambda checkout: re.sub(
        r"\s+", " ", browser.get(f"/portal/checkouts/{checkout.pk}").content.decode()
    )


class TestTheOrdersPage:
    @pytest.mark.parametrize("is_notified", [True, False], ids=["notified", "found at night"])
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
    def test_explains_an_action_outside_the_service(
        self, at: Callable[[str], Checkout], words: Words, case: Case, is_notified: bool
    ) -> None:
        checkout = at(case.status)
        assert "outside this service" not in words(checkout)
        act_in_dashboard(checkout, case.kind, is_notified=is_notified)
        shown = words(checkout)
        assert case.title in shown and case.meaning in shown
        whom = f'<a href="mailto:{settings.SUPPORT_EMAIL}?subject=Order%20{checkout.merchant_order_id}">'
        assert whom in shown and f'<bdi class="whole">{checkout.merchant_order_id}</bdi>.' in shown

    def test_does_not_ask_for_a_capture_if_only_a_part_was_captured(
        self, at: Callable[[str], Checkout], words: Words
    ) -> None:
        """The test sets the captured amount directly, because the sandbox's bank captures only whole holds."""
        checkout = at("authorized")
        act_in_dashboard(checkout, "capture")
        told = Discrepancy.objects.get(kind="outside_capture")
        other = {"kind": "captured_another_amount", "facts": told.facts | {"amount": 5000}}
        Discrepancy.objects.filter(pk=told.pk).update(**other)
        shown = words(checkout)
        assert "captured a different amount than the one held: £50.00" in shown
        assert "A capture would not use that money" in shown
        assert "Capture it in time" not in shown
        reporting.close_discrepancy(Discrepancy.objects.get().pk, note="Seen to.", author="olga@pay.example")
        assert "captured a different amount" not in words(checkout)

    def test_says_that_a_capture_has_found_the_money(
        self, acme: Merchant, held: Checkout, words: Words
    ) -> None:
        act_in_dashboard(held, "capture")
        captures.capture(acme, held.pk, cause=CAUSE)
        assert "so the customer was not charged twice" in words(held)

    def test_says_that_the_money_of_an_order_that_has_ended_goes_back(
        self, held: Checkout, words: Words
    ) -> None:
        act_in_dashboard(held, "capture")
        make_late(held)
        assert "Do not fulfil it. We make sure that the customer gets the money back." in words(held)

    def test_does_not_show_actions_on_another_order_or_merchant(
        self, acme: Merchant, rival: Merchant, held: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        act_in_dashboard(held, "void")
        assert outside_actions.open_actions(order.read_order(acme, held.pk))
        other = pay(factories.checkout(acme))
        assert outside_actions.open_actions(order.read_order(acme, other.pk)) == []
        Discrepancy.objects.update(merchant=rival)
        assert outside_actions.open_actions(order.read_order(acme, held.pk)) == []

    def test_says_of_a_mates_card_that_the_order_stays(
        self, order: Checkout, shares: list[PaymentRequest], words: Words
    ) -> None:
        mates.pay(shares[0])
        mates.pump(order.pk)
        share = PaymentRequest.objects.get(pk=shares[0].pk)
        facts = {
            "checkout": str(order.pk),
            "payment": str(share.payment_id),
            "amount": 500,
            "currency": "GBP",
        }
        reporting.report(kinds.CAPTURED_ANOTHER_AMOUNT, share.payment_id, merchant=order.merchant, **facts)
        shown = words(order)
        assert (
            "than the one held: £5.00" in shown
            and "It was a mate’s card, so the order does not change." in shown
        )

    def test_costs_no_statement(self, acme: Merchant, held: Checkout) -> None:
        act_in_dashboard(held, "void")
        read = order.read_order(acme, held.pk)
        with CaptureQueriesContext(connection) as asked:
            assert len(outside_actions.open_actions(read)) == 1
        assert len(asked) == 0


@pytest.mark.rule("sync.outside")
class TestADashboardRefund:
    """A refund in the bank's dashboard is recorded automatically, and the merchant can refund the rest."""

    def test_leaves_the_rest_to_be_refunded(self, acme: Merchant, captured: Checkout) -> None:
        browser, page = stage.browser(stage.person(acme, Role.OWNER)), f"/portal/checkouts/{captured.pk}"

        def shown(path: str = "") -> str:
            return re.sub(r"\s+", " ", browser.get(page + path, follow=True).content.decode())

        assert ">Refund £90.00</a>" in shown() and "Still charged" not in shown()
        given = refund_outside(captured.payment, 1000, is_pending=True)
        assert (
            ">Refund £80.00</a>" in shown()
            and "A refund of £10.00 to Visa ending 4242 was made in the bank’s" in shown()
        )
        way = r"Where the money is.*On its way back</dt>[^−]*−£10\.00.*Still charged</strong> .*£80\.00<"
        assert re.search(way, shown()) and "Refund pending</span>" in shown()
        assert 'class="notice' not in shown()
        assert 'The rest goes back to the cards that paid: <strong class="amount">£80.00' in shown("/refund")
        refunds.accept(acme, captured.pk, ref="r-1", cause=CAUSE)
        mates.pump(captured.pk, rounds=3)
        assert "The refund is on its way" in shown(), "as long as that of others is"
        bank.call_bank("end_refund", payment=captured.payment_id, reference=given)
        hear()
        assert "Still charged" not in shown() and "£90.00 went back to Visa ending 4242" in shown()

    def test_of_the_whole_amount_settles_a_refund_at_once(self, acme: Merchant, captured: Checkout) -> None:
        browser, page = stage.browser(stage.person(acme, Role.OWNER)), f"/portal/checkouts/{captured.pk}"
        refund_outside(captured.payment, 9000)
        assert "No card is owed any money" in browser.get(f"{page}/refund").content.decode()
        refunds.accept(acme, captured.pk, ref="r-1", cause=CAUSE)
        captured.refresh_from_db()
        assert captured.status == "refunded" and ledger_proof.find_breaches() == []

    def test_that_failed_leaves_the_whole_amount_to_be_refunded(
        self, captured: Checkout, words: Words
    ) -> None:
        given = refund_outside(captured.payment, 1000)
        assert "Still charged" in words(captured)
        bank.call_bank("end_refund", payment=captured.payment_id, reference=given)
        hear()
        assert "Still charged" not in words(captured) and "was returned" in words(captured)

    def test_that_fails_after_the_refund_is_shown_as_returned(
        self, acme: Merchant, captured: Checkout, words: Words
    ) -> None:
        given = refund_outside(captured.payment, 4000)
        refunds.accept(acme, captured.pk, ref="r-1", cause=CAUSE)
        mates.pump(captured.pk, rounds=3)
        bank.call_bank("end_refund", payment=captured.payment_id, reference=given)
        hear()
        assert "The refund was returned: £40.00" in words(captured)
