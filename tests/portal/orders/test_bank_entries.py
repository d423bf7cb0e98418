"""The bank's entries in a timeline: requests to the bank, its responses, and the postings."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from checkout import refunds
from checkout.models import Checkout, PaymentRequest
from checkout.remedies import settling_outside
from config.lib import clock
from payments import money, planning
from payments.models import Booking, Operation
from payments.providers.sandbox import client as bank_client
from portal.orders import bank_entries
from portal.orders.entries import REFUND_FAILED, Entry, Window
from portal.orders.order import Order
from tests import factories, mates
from tests.factories import CAUSE
from tests.outside import come_back, decide, dispute, hear, refund_outside, reimburse, returned

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]


def entries_of(checkout: Checkout) -> list[Entry]:
    return sorted(
        bank_entries.bank_entries_of(Order(checkout), Window(None, 500)), key=lambda entry: entry.at
    )


def end(checkout: Checkout, reference: str, fails_with: str = "") -> None:
    """Complete a pending refund, or return a settled one, in the bank's dashboard. The bank notifies the service."""
    bank_client.call_bank(
        "end_refund", payment=checkout.payment_id, reference=reference, fails_with=fails_with
    )
    hear()


class TestEntries:
    def test_of_a_declined_card_have_no_postings(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (declined,) = entries_of(pay(unpaid, "4000000000009995"))
        assert declined.title == "Holding £90.00 on Visa ending 9995: declined"
        assert (declined.tone, declined.text) == ("stop", "Insufficient funds.")
        assert declined.facts["state"] == "declined" and declined.facts["postings"] == []

    @pytest.mark.parametrize(
        ("reason", "title", "text"),
        [
            ("new_key", "did not arrive", "The bank did not get this request, so we sent a new one."),
            ("withdrawn", "not sent", "It was planned, and is not sent any more."),
        ],
    )
    def test_of_a_replaced_or_withdrawn_request_say_what_happened(
        self, held: Checkout, reason: str, title: str, text: str
    ) -> None:
        Operation.objects.update(state="failed", reason=reason)
        (entry,) = entries_of(held)
        assert entry.title == f"Holding £90.00 on Visa ending 4242: {title}"
        assert (entry.tone, entry.text) == ("still", text)

    @pytest.mark.parametrize("reason", [planning.REPLACED, planning.WITHDRAWN])
    def test_of_a_refund_that_the_bank_did_not_get_are_not_part_of_its_failure(
        self, captured: Checkout, reason: str
    ) -> None:
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        factories.replace_key(Operation.objects.select_related("payment").get(kind="refund"))
        Operation.objects.filter(reason=planning.REPLACED).update(reason=reason)
        Operation.objects.filter(kind="refund", ended_at=None).update(
            state="failed", reason="refused", ended_at=clock.now()
        )
        not_sent, refused = (entry for entry in entries_of(captured) if "Giving" in entry.title)
        assert (not_sent.part_of, refused.part_of) == ("", REFUND_FAILED)
        assert not_sent.tone == "still" and refused.tone == "stop"

    def test_of_captured_money_show_its_postings(self, captured: Checkout) -> None:
        held, taken = entries_of(captured)
        assert (held.title, held.text) == ("The bank holds £90.00 on Visa ending 4242", "")
        assert taken.title == "The bank took £90.00 from Visa ending 4242"
        assert taken.text == "Posted: £90.00 from the bank to you."
        assert sorted(line["amount"] for line in taken.facts["postings"]) == [-9000, 9000]

    def test_of_a_dispute_show_its_start_and_its_end(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        *_, opened = entries_of(captured)
        assert opened.title == "The customer disputes £90.00" and (opened.tone, opened.icon) == (
            "held",
            "alert",
        )
        assert opened.text == (
            "Their bank has taken the money back and keeps it until the dispute is decided."
            " Posted: £90.00 from you to the bank."
        )
        decide(found, is_won=False)
        *_, decided = entries_of(captured)
        assert (decided.title, decided.text) == ("The dispute over £90.00 is lost", "")
        decide(found, is_won=True)
        *_, decided = entries_of(captured)
        assert decided.title == "The dispute over £90.00 is won" and decided.tone == "done"
        assert decided.text == "Posted: £90.00 from the bank to you."
        assert decided.facts["dispute"] == opened.facts["dispute"] == str(found.pk)

    def test_of_an_appealed_dispute_show_each_movement(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        decide(found, is_won=True)
        decide(found, is_won=False)
        *_, opened, back, lost = entries_of(captured)
        assert opened.title == "The customer disputes £90.00"
        assert back.title == "The customer’s bank gave £90.00 back to you"
        assert lost.title == "The dispute over £90.00 is lost" and lost.text.startswith(
            "Posted: £90.00 from you"
        )

    @pytest.mark.rule("sync.outside")
    def test_of_a_dashboard_refund_show_its_status(self, captured: Checkout) -> None:
        given = refund_outside(captured.payment, 2000, is_pending=True)
        *_, going = entries_of(captured)
        assert going.title == "A refund of £20.00 to Visa ending 4242 was made in the bank’s dashboard"
        assert (going.tone, going.text) == ("move", "Accepted by the bank, not settled yet.")
        end(captured, given)
        *_, done = entries_of(captured)
        assert done.title == "£20.00 was refunded to Visa ending 4242 in the bank’s dashboard"
        assert (done.tone, done.text) == ("still", "Posted: £20.00 from you to the bank.")
        end(captured, given)
        *_, back = entries_of(captured)
        assert back.title == "The refund of £20.00 to Visa ending 4242 was returned" and back.tone == "stop"
        assert back.text == "The card’s account is closed. Posted: £20.00 from the bank to you."

    @pytest.mark.rule("sync.outside")
    def test_of_a_failed_dashboard_refund_say_so(self, captured: Checkout) -> None:
        given = refund_outside(captured.payment, 2000, is_pending=True)
        end(captured, given, "card_closed")
        *_, failed = entries_of(captured)
        assert failed.title.endswith("in the bank’s dashboard: failed") and failed.tone == "stop"
        assert failed.facts["postings"] == []

    def test_of_a_refund_settled_outside_show_it_and_its_reversal(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        reimburse(unpaid, pay)
        come_back()
        settling_outside.settle_outside(returned(unpaid).pk, note="By bank transfer", cause=CAUSE)
        settling_outside.reverse_booking(Booking.objects.get().pk, note="It was not", cause=CAUSE)
        booked, reversed_ = (entry for entry in entries_of(unpaid) if "another way" in entry.title)
        assert booked.title == "£30.00 was refunded another way: Visa ending 7726 could not take it"
        assert booked.text == "Posted: £30.00 from the lead to elsewhere."
        assert reversed_.title == "The entry for £30.00 refunded another way was reversed"
        assert reversed_.text == "Posted: £30.00 from elsewhere to the lead."

    def test_of_a_closed_debt_to_the_lead_say_so(
        self, order: Checkout, shares: list[PaymentRequest], settings: Settings
    ) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
        mates.pay(shares[0])
        mates.pump(order.pk)
        decide(dispute(order.payment), is_won=False)
        amount = money.display(shares[0].amount, "GBP")
        *_, closed = entries_of(order)
        assert closed.title == f"{amount} of a mate’s payment is not owed to the lead any more"
        assert closed.text == f"Posted: {amount} from the lead to you."
        assert "not sent" in next(
            entry.title for entry in entries_of(order) if entry.facts.get("purpose") == "reimbursement"
        )
