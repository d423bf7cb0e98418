"""The pages that payers see after money was moved outside the service.

The causes are refunds in the bank's dashboard, disputes, and bookings.
"""

from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from checkout import captures, refunds
from checkout.models import Checkout
from checkout.proof import ledger_proof
from checkout.remedies import settling_outside
from payments.models import Booking
from payments.providers.sandbox import client
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer, words
from tests.hosted_page.group.test_bill import text
from tests.hosted_page.status.test_refund import final_charge, rows
from tests.outside import RETURNS, come_back, decide, dispute, hear, refund_outside, returned, settle

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("posted"),
    pytest.mark.rule("pay.honest_page"),
]


@pytest.fixture
def paid(lea: Payer) -> Checkout:
    """Return the order for which Lea has paid £90.00, and which the merchant has captured."""
    lea.pay()
    return captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)


def refund(order: Checkout) -> None:
    """Refund the rest of the order on the merchant's request. Let the bank settle the refund, and check the ledger."""
    refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
    mates.pump(order.pk, rounds=3)
    assert ledger_proof.find_breaches() == []


@pytest.mark.rule("sync.outside")
class TestADashboardRefund:
    @pytest.mark.parametrize("is_pending", [False, True])
    def test_is_on_the_receipt_until_it_fails(self, lea: Payer, paid: Checkout, is_pending: bool) -> None:
        assert "gave you" not in words(lea.get())
        given = refund_outside(paid.payment, 2000, is_pending=is_pending)
        page = text(words(lea.get()))
        assert "Confirmed and paid" in page and "Acme Tickets refunded you £20.00." in page
        assert "£20.00" not in words(Payer(paid).get()), "who holds the link"
        client.call_bank("end_refund", payment=paid.payment_id, reference=given, fails_with="card_closed")
        hear()
        assert "gave you" not in words(lea.get())

    @pytest.mark.rule("page.refund")
    def test_is_listed_before_the_shops_own_refund(self, lea: Payer, paid: Checkout) -> None:
        refund_outside(paid.payment, 2000)
        refund(paid)
        page = words(lea.get())
        assert rows(page) == [
            ("Taken", "£90.00"),
            ("Refunded earlier", "−£20.00"),
            ("Refunded", "−£70.00"),
        ]
        assert "<h1>£70.00 goes back to your card</h1>" in page and final_charge(page) == "£0.00"

    @pytest.mark.rule("page.refund")
    def test_of_the_whole_amount_leaves_nothing_to_refund(self, lea: Payer, paid: Checkout) -> None:
        refund_outside(paid.payment, 9000)
        refund(paid)
        page = words(lea.get())
        assert rows(page) == [("Taken", "£90.00"), ("Refunded earlier", "−£90.00")]
        assert "<h1>Refunded</h1>" in page and final_charge(page) == "£0.00"

    @pytest.mark.rule("refund.returned")
    def test_that_fails_after_the_refund_is_shown_as_returned(self, lea: Payer, paid: Checkout) -> None:
        given = refund_outside(paid.payment, 4000)
        refund(paid)
        assert "The refund was returned" not in words(lea.get())
        client.call_bank("end_refund", payment=paid.payment_id, reference=given)
        hear()
        page = words(lea.get())
        assert "<h1>The refund was returned</h1>" in page and rows(page) == [
            ("Taken", "£90.00"),
            ("Refunded", "−£90.00"),
            ("Sent back by your bank", "£40.00"),
        ], rows(page)

    @pytest.mark.rule("share.borne")
    def test_reduces_what_the_lead_covers_and_ends_the_links(
        self, lead: Payer, finn: Mate, order: Checkout
    ) -> None:
        finn.pay()
        assert mates.settled(finn.share) == "reimbursed"
        assert "You’re covering £70.00 for now" in text(words(lead.get()))
        refund_outside(order.payment, 1500)
        page = text(words(lead.get()))
        assert (
            "You’re covering £55.00" in page
            and "for now" not in page
            and "Refunded£15.00" in page
            and "has the whole" not in page
        )
        assert "Acme Tickets refunded you £15.00." in page
        amy = text(words(Mate(order.payment_requests.get(name="Amy")).get()))
        assert "You are no longer asked to pay" in amy and "covers your share" not in amy
        assert (
            "Acme Tickets has refunded a payment for this order. Ask Lea whether the order is still valid."
            in amy
        )


@pytest.mark.rule("dispute.lost")
class TestADispute:
    @pytest.mark.rule("page.refund")
    def test_of_the_whole_amount_leaves_nothing_for_the_lead_to_be_refunded(
        self, lead: Payer, finn: Mate, order: Checkout, settings: Settings
    ) -> None:
        """After a lost dispute about the lead's whole payment, a refund returns no money to the lead.

        The mate who has paid a share still gets that payment back.
        """
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
        finn.pay()
        mates.pump(order.pk)
        decide(dispute(order.payment), is_won=False)
        assert "Your bank gave you £90.00 back" in text(words(lead.get()))
        refund(order)
        page = words(lead.get())
        assert rows(page) == [("Taken", "£90.00"), ("Returned by your bank", "−£90.00")]
        assert "<h1>Refunded</h1>" in page and final_charge(page) == "£0.00"
        assert "<h1>£20.00 goes back to your card</h1>" in words(finn.get())

    def test_that_is_won_on_appeal_is_not_shown_any_more(self, lea: Payer, paid: Checkout) -> None:
        found = dispute(paid.payment)
        decide(found, is_won=False)
        assert "Your bank gave you £90.00 back" in text(words(lea.get()))
        decide(found, is_won=True)
        page = text(words(lea.get()))
        assert "Your bank" not in page and "Confirmed and paid." in page

    def test_of_a_mate_stays_excluded_from_the_refund(self, lead: Payer, finn: Mate, order: Checkout) -> None:
        finn.pay()
        assert mates.settled(finn.share) == "reimbursed"
        finn.share.refresh_from_db()
        decide(dispute(finn.share.payment), is_won=False)
        refund(order)
        page = words(lead.get())
        assert rows(page)[-1] == ("Refunded", "−£70.00") and "gets its" not in page
        assert "Your bank gave you £20.00 back" in text(words(finn.get()))


@pytest.mark.rule("refund.returned", "share.borne")
class TestAReturnedReimbursementSettledOutside:
    def test_is_not_on_the_leads_card_and_is_owed_again_after_a_reversal(self, lea: Payer) -> None:
        lea.pay(RETURNS, split="own", name=["Finn"], amount=["20"], your_name="Lea")
        order = captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        finn = Mate(order.payment_requests.get(name="Finn"))
        finn.pay()
        settle(order)
        settle(order)
        come_back()
        assert "Sent back" in words(lea.get())
        settling_outside.settle_outside(returned(order).pk, note="By bank transfer", cause=CAUSE)
        page = text(words(lea.get()))
        assert "Paid back another way" in page and "ack on your card" not in page
        assert "is back on Visa" not in page and "Sent back" not in page
        settling_outside.reverse_booking(Booking.objects.get().pk, note="It was not", cause=CAUSE)
        page = text(words(lea.get()))
        assert "another way" in page and "ack on your card" not in page and "Paid back" not in page
