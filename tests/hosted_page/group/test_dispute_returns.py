"""The pages of a split order after the merchant has lost a dispute, so that a payer gets a payment back for good."""

from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from checkout import mate_shares
from checkout.models import Checkout, PaymentRequest
from checkout.states import ShareStatus
from tests import mates
from tests.hosted_page.browsers import Mate, Payer
from tests.hosted_page.group.test_bill import text
from tests.hosted_page.group.test_dispute import main
from tests.outside import decide, dispute

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("posted"),
    pytest.mark.rule("dispute.lost"),
]


def lose(paid: Checkout | PaymentRequest) -> None:
    """Dispute the payment for an order or a share, and let the merchant lose the dispute."""
    paid.refresh_from_db()
    decide(dispute(paid.payment), is_won=False)


@pytest.fixture
def paid(finn: Mate) -> Mate:
    """Return the browser of Finn, who has paid £20.00. The amount is reimbursed to Lea's card."""
    finn.pay()
    assert mates.settled(finn.share) == ShareStatus.REIMBURSED
    return finn


@pytest.fixture
def owed(finn: Mate, order: Checkout, settings: Settings) -> Mate:
    """Return the browser of Finn, who has paid £20.00. The amount will be reimbursed to Lea's card in a day."""
    settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
    finn.pay()
    mates.pump(order.pk)
    return finn


class TestLostDisputeOfTheLead:
    def test_shows_the_returned_amount_and_the_mates_money_on_the_card(
        self, lead: Payer, paid: Mate, order: Checkout
    ) -> None:
        lose(order)
        page = text(main(lead.get()))
        assert "Your bank gave you £90.00 back" in page and "You’re covering" not in page
        assert "Paid" in page and ", went to your card" in page and "kept by the shop" not in page
        assert "Your card also received £20.00 from Finn. Please settle this with them." in page

    def test_says_that_a_share_not_yet_reimbursed_stays_with_the_shop(
        self, lead: Payer, owed: Mate, order: Checkout
    ) -> None:
        lose(order)
        assert owed.status() == ShareStatus.REIMBURSED, "closed against what the bank gave back"
        page = text(main(lead.get()))
        assert "kept by the shop" in page and "went to your card" not in page and "had paid" not in page

    def test_does_not_say_that_money_is_on_the_leads_card_if_the_shop_keeps_it(
        self, owed: Mate, order: Checkout
    ) -> None:
        lose(order)
        page = text(main(owed.get()))
        assert "£20.00 was taken from your Mastercard ending 4444. You’ve settled up with Lea." in page
        stranger = text(main(Mate(owed.share).get()))
        assert "£20.00 was taken from the card." in stranger and "Lea’s card" not in page + stranger

    def test_says_that_the_money_is_on_the_leads_card_if_it_was_reimbursed(
        self, paid: Mate, order: Checkout
    ) -> None:
        lose(order)
        assert "It is back on Lea’s card." in text(main(paid.get()))

    def test_does_not_promise_money_to_the_lead_before_the_decision(
        self, owed: Mate, order: Checkout
    ) -> None:
        dispute(order.payment)
        pages = text(main(owed.get())) + text(main(Mate(owed.share).get()))
        assert "was taken from" in pages and "Lea’s card" not in pages

    def test_of_a_part_shows_the_part(self, lead: Payer, paid: Mate, order: Checkout) -> None:
        decide(dispute(order.payment, 4000), is_won=False)
        assert "Your bank gave you £40.00 back" in text(main(lead.get()))


class TestLostDisputeOfAMate:
    def test_shows_the_amount_without_the_mates_name(self, lead: Payer, paid: Mate, order: Checkout) -> None:
        lose(paid.share)
        page = text(main(lead.get()))
        assert (
            "You’re covering £70.00" in page
            and "£70.00 now" not in page
            and "Back on your card" in page
            and "Adds up" in page
        )
        assert "Returned to a mate " in page, "and not the order"
        told = "A bank has returned £20.00 to a mate’s card. Acme Tickets covers this amount, not you."
        assert f"{told} Your mates are no longer asked to pay. You cover any share that is not paid." in page
        assert "Mates paid" not in page and "Returned to a mate£20.00" in page
        shown = main(lead.get())
        assert 'class="group-key look-returned"' in shown and '<svg class="look-returned" ' in shown
        assert '<svg class="look-paid' not in shown
        assert "You cover it" in page and "Confirmed and paid" not in page, "Amy’s"
        assert "whether your order is still valid" in page and "Your bank" not in page

    def test_does_not_mention_links_once_all_have_paid(
        self, lead: Payer, paid: Mate, order: Checkout
    ) -> None:
        amy = order.payment_requests.get(position=3)
        mates.pay(amy)
        assert mates.settled(amy) == ShareStatus.REIMBURSED
        lose(paid.share)
        page = text(main(lead.get()))
        assert "You’re covering £40.00, your own share" in page and "no longer asked" not in page

    def test_before_the_reimbursement_leaves_the_share_with_the_lead(self, lead: Payer, owed: Mate) -> None:
        lose(owed.share)
        assert owed.status() == ShareStatus.REFUNDED
        page = text(main(lead.get()))
        assert "A bank has returned £20.00 to a mate’s card. You cover that share." in page
        assert "You’re covering £90.00" in page and "Back on your card" not in page

    def test_together_with_the_leads_does_not_say_who_covers_the_share(
        self, lead: Payer, paid: Mate, order: Checkout
    ) -> None:
        lose(paid.share)
        lose(order)
        page = text(main(lead.get()))
        assert "Your bank gave you £90.00 back" in page
        assert "A bank has returned £20.00 to a mate’s card." in page
        assert "covers this amount" not in page and "You’re covering" not in page

    @pytest.mark.parametrize("delay", [0, 24])
    def test_is_shown_to_the_mate_and_to_no_other_mate(
        self, finn: Mate, order: Checkout, settings: Settings, delay: int
    ) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(hours=delay)
        finn.pay()
        mates.pump(order.pk)
        if not delay:
            assert mates.settled(finn.share) == ShareStatus.REIMBURSED
        lose(finn.share)
        page = text(main(finn.get()))
        assert page.count("Your bank gave you £20.00 back") == 2, "above, and in the receipt"
        assert "Returned " in page and "refunded the whole order" not in page
        assert "Total, paid by" not in page
        other = text(main(Mate(finn.share).get()))
        assert "Your bank" not in other and "refunded the whole order" not in other
        amy = order.payment_requests.get(position=3)
        assert "Finn" not in text(main(Mate(amy).get()))


class TestTheTotal:
    def test_names_the_lead_as_payer_except_during_a_dispute(
        self, lead: Payer, finn: Mate, order: Checkout
    ) -> None:
        assert "Total, paid by Lea" in main(finn.get())
        found = dispute(order.payment)
        assert "paid by" not in main(finn.get()) and "Total" in main(finn.get())
        decide(found, is_won=True)
        assert "Total, paid by Lea" in main(finn.get())

    def test_of_a_held_order_names_no_payer(self, lead: Payer) -> None:
        assert "paid by" not in main(Mate(lead.checkout.payment_requests.get(position=2)).get())

    def test_of_a_share_that_the_lead_keeps_names_the_lead_as_payer(
        self, finn: Mate, order: Checkout
    ) -> None:
        mate_shares.cancel(finn.share.pk)
        assert "Total, paid by Lea" in main(finn.get())
