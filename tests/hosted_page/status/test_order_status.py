"""The status page of an order. While the outcome of a payment is unknown, the page does not state one."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.db.models import F
from django.test import Client

from checkout import cancellations, captures, expiry, refunds, tasks
from checkout.models import Checkout
from config.lib import clock
from hosted_page.status import order_status
from payments import open_operations
from payments.models import Operation
from payments.providers.sandbox import fault_injection
from payments.providers.sandbox.models import Charge
from tests import outages
from tests.factories import CAUSE, make_late
from tests.hosted_page.browsers import Payer, words
from tests.outside import decide, dispute

pytestmark = pytest.mark.django_db


def main_text(checkout: Checkout) -> order_status.PageStatus:
    checkout.refresh_from_db()
    found = order_status.order_status_of(checkout, now=clock.now(), is_lead=True)
    assert found is not None
    return found


def test_an_expired_order_with_a_possible_hold_says_that_the_hold_is_released(
    unpaid: Checkout, pay: Callable[..., Checkout]
) -> None:
    fault_injection.set_fault(verb="authorize", mode="done_then_reset", times=1)
    pay(unpaid)
    Operation.objects.update(created_at=F("created_at") - timedelta(seconds=70))
    make_late(unpaid)
    expiry.expire_one_if_due(unpaid.pk)
    assert Charge.objects.get().state == "held"
    assert (
        "<strong>You paid nothing.</strong> If your bank still holds any money, it is released."
        in main_text(unpaid).paragraphs[0]
    )


def test_a_capture_in_doubt_shows_no_countdown_and_promises_nothing(held: Checkout) -> None:
    fault_injection.set_fault(verb="capture", mode="done_then_reset", times=1)
    fault_injection.set_fault(verb="look_up", mode="down", times=1)
    with pytest.raises(captures.OutcomeUnknown):
        captures.capture(held.merchant, held.pk, cause=CAUSE)
    make_late(held)
    shown = main_text(held)
    assert (shown.heading, shown.countdown, shown.live) == ("Waiting for the bank", None, True)
    page = Client().get(f"/pay?id={held.pk}").content.decode()
    assert "has asked for it, and the bank has not answered yet" in page and "nothing is taken" not in page


def test_a_stranger_at_the_banks_return_address_causes_no_call_to_the_bank(
    unpaid: Checkout, pay: Callable[..., Checkout], monkeypatch: pytest.MonkeyPatch
) -> None:
    pay(unpaid, "4000002500003155")
    asked: list[str] = []
    monkeypatch.setattr(fault_injection, "call_with_faults", lambda verb, _: asked.append(verb))
    assert Client().get(f"/pay/confirmed?id={unpaid.pk}").status_code == 303
    assert asked == []


def test_an_order_held_during_the_page_request_is_not_offered_for_payment(
    lea: Payer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault_injection.set_fault(verb="authorize", mode="done_then_reset", times=1)
    lea.pay()
    ask = open_operations.open_operation

    def meanwhile(subject: UUID) -> Operation | None:
        outages.pump()
        return ask(subject)

    with monkeypatch.context() as patch:
        patch.setattr(open_operations, "open_operation", meanwhile)
        page = lea.get()
    assert page.status_code == 200 and "Please don’t pay again." in words(page)
    assert "Held, not taken yet" in words(lea.get())


@pytest.mark.rule("pay.honest_page")
class TestEveryStateHasAnHonestPage:
    def test_held(self, lea: Payer) -> None:
        lea.pay()
        page = words(lea.get())
        assert "Held, not taken yet" in page and "your Visa ending 4242" in page and "hx-get" in page

    def test_confirmed(self, lea: Payer) -> None:
        lea.pay()
        captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        page = words(lea.get())
        assert "Confirmed and paid." in page and lea.checkout.return_url in page

    def test_released_by_time(self, lea: Payer) -> None:
        lea.pay()
        lea.checkout.refresh_from_db()
        make_late(lea.checkout)
        page = words(lea.get())
        assert "Releasing. Nothing was taken." in page and "is being released" in page and "hx-get" in page
        tasks.finish_operations()
        page = words(lea.get())
        assert "Released. Nothing was taken." in page and "did not confirm by <time" in page
        assert (
            "This order has ended." in page
            and "is no longer held on your Visa ending 4242" in page
            and "hx-get" not in page
        )

    def test_released_though_the_shop_asked_for_it_in_time(self, lea: Payer) -> None:
        lea.pay()
        lea.checkout.refresh_from_db()
        fault_injection.set_fault(verb="capture", mode="down", times=1)
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        make_late(lea.checkout)
        Operation.objects.filter(ended_at=None).update(next_attempt_at=clock.now())
        tasks.finish_operations()
        tasks.finish_operations()
        page = words(lea.get())
        assert "requested the payment, but the bank did not confirm it in time" in page
        assert "did not confirm by" not in page and "Nothing was taken." in page

    def test_released_by_the_shop(self, lea: Payer) -> None:
        lea.pay()
        cancellations.cancel(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        assert "cancelled this order at <time" in words(lea.get())

    def test_cancelled_before_payment(self, lea: Payer) -> None:
        cancellations.cancel(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        assert "You paid nothing</strong>, and nothing is held" in lea.get().content.decode()

    def test_expired(self, lea: Payer) -> None:
        make_late(lea.checkout)
        page = words(lea.get())
        assert "This order has expired" in page and "This order was open until" in page
        assert "You paid nothing</strong>, and nothing is held" in page and "Start again in the shop." in page

    def test_expired_for_a_person_with_the_link_of_a_split_order(self, lea: Payer) -> None:
        lea.sign_in()
        lea.post("/split", split="own", name="Finn", amount="20", your_name="Lea", when="first")
        make_late(lea.checkout)
        page = words(Payer(lea.checkout).get())  # a mate can see this page
        assert "on your card" not in page and "Any hold for this order is released." in page

    def test_refund_in_progress(self, lea: Payer) -> None:
        lea.pay()
        captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        refunds.accept(lea.checkout.merchant, lea.checkout.pk, ref="r", cause=CAUSE)
        page = words(lea.get())
        assert "<h1>£90.00 goes back to your card</h1>" in page and "Going back" in page and "hx-get" in page

    @pytest.mark.rule("dispute.lost")
    @pytest.mark.usefixtures("posted")
    def test_money_returned_by_the_bank(self, lea: Payer) -> None:
        lea.pay()
        lea.checkout.refresh_from_db()
        captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        found = dispute(lea.checkout.payment)
        assert "Confirmed and paid" in words(lea.get()), "the shop has it until the bank decides"
        decide(found, is_won=False)
        page = words(lea.get())
        assert "<h1>Your bank gave you £90.00 back</h1>" in page and "Confirmed and paid" not in page
        assert "Ask <bdi>Acme Tickets</bdi> whether your order is still valid." in page
        assert (
            "Returned</span>" in page and 'Your bank gave you <span class="amount">£90.00</span> back' in page
        )
        assert "Receipt" in page and "Offers" not in page and "data-auto-return" not in page
        stranger = words(Payer(lea.checkout).get())
        assert "A bank has returned a payment for this order." in stranger and "£90.00 back" not in stranger

    def test_in_doubt(self, lea: Payer) -> None:
        lea.pay()
        Operation.objects.update(state="unknown", ended_at=None)
        page = words(lea.get())
        assert (
            "Please don’t pay again." in page
            and "We asked your bank for <strong>£90.00</strong> on your Visa" in page
        )
        stranger = words(Payer(lea.checkout).get())
        assert "The bank was asked for <strong>£90.00</strong>." in stranger and "4242" not in stranger

    def test_a_stranger_with_the_link_sees_no_card(self, lea: Payer) -> None:
        lea.pay()
        page = words(Payer(lea.checkout).get())
        assert "Held, not taken yet" in page and "4242" not in page
