"""The refund of an order, as its lead and its mates see it on their pages."""

import re
from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from checkout import captures, mate_shares, refunds
from checkout.models import Checkout
from checkout.remedies import sending
from payments.models import Operation
from payments.providers.sandbox.models import Call
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer, words
from tests.hosted_page.group.test_bill import seen
from tests.outside import RETURNS, come_back, returned, settle

pytestmark = [pytest.mark.django_db, pytest.mark.rule("page.refund")]


def rows(page: str) -> list[tuple[str, str]]:
    """Return the label and the amount of each line on the refund's bill, without the total."""
    part = page.partition('aria-labelledby="refund-title"')[2].partition("</section>")[0]
    found = re.findall(r'<bdi>([^<]*)</bdi>.*?class="amount">([^<]*)<', part, re.DOTALL)
    return [(label, amount) for label, amount in found if not label.startswith("Acme")]


def final_charge(page: str) -> str:
    label = r"(?:Final charge to your card|Still owed to you)"
    found = re.search(label + r'</strong>\s*<span class="amount">([^<]*)<', page)
    assert found
    return found[1]


class TestTheLead:
    def test_without_mates_gets_the_whole_amount(self, lea: Payer) -> None:
        lea.pay()
        captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        refunds.accept(lea.checkout.merchant, lea.checkout.pk, ref="r", cause=CAUSE)
        assert rows(words(lea.get()))[-1] == ("On its way back", "−£90.00")
        mates.pump(lea.checkout.pk, rounds=3)
        page = words(lea.get())
        assert "<h1>£90.00 goes back to your card</h1>" in page and "Your Visa ending 4242" in page
        assert rows(page) == [("Taken", "£90.00"), ("Refunded", "−£90.00")] and final_charge(page) == "£0.00"
        assert ", London time" in page and "mates" not in page

    def test_with_mates_gets_the_amount_that_the_card_still_bore(
        self, lead: Payer, finn: Mate, order: Checkout
    ) -> None:
        finn.pay()
        assert mates.settled(finn.share) == "reimbursed"
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        page = words(lead.get())
        assert "is refunding the whole" in page and "Each card gets back its own part" in page
        assert "<h1>£70.00 goes back to your card</h1>" in page and "have ended" not in page
        assert mates.settled(finn.share) == "refunded"
        page = words(lead.get())
        assert rows(page) == [
            ("Taken", "£90.00"),
            ("Back when Finn paid", "−£20.00"),
            ("Refunded", "−£70.00"),
        ]
        assert "<h1>£70.00 goes back to your card</h1>" in page and final_charge(page) == "£0.00"
        assert "Finn’s card gets its £20.00 back too. Your mates’ links have ended." in page
        assert "The cards" not in page and "4444" not in page

    def test_before_a_reimbursement_gets_the_whole_amount(
        self, lead: Payer, finn: Mate, order: Checkout, settings: Settings
    ) -> None:
        """If a mate's payment has not reached the lead's card yet, a refund returns the whole amount to the lead.

        The mate also gets the amount of the share back.
        """
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
        finn.pay()
        mates.pump(order.pk)
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        assert mates.settled(finn.share) == "refunded"
        page = words(lead.get())
        assert rows(page) == [("Taken", "£90.00"), ("Refunded", "−£90.00")] and final_charge(page) == "£0.00"
        assert "Finn’s card gets its £20.00 back too." in page

    def test_sees_no_amounts_while_a_reimbursement_is_unresolved(
        self, lead: Payer, finn: Mate, order: Checkout, settings: Settings
    ) -> None:
        """While the outcome of a mate's reimbursement is unknown, the page shows no amounts.

        The amounts depend on whether the reimbursement reaches the lead's card.
        """
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
        finn.pay()
        mates.pump(order.pk)
        Operation.objects.filter(purpose="reimbursement").update(state="unknown")
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        page = words(lead.get())
        assert "<h1>Your money is going back</h1>" in page and rows(page) == []

    def test_whose_mates_paid_everything(self, lead: Payer, finn: Mate, order: Checkout) -> None:
        mate_shares.cancel(order.payment_requests.get(position=3).pk)
        order.payment_requests.filter(pk=finn.share.pk).update(amount=order.amount)
        finn.share.refresh_from_db()
        finn.pay()
        assert mates.settled(finn.share) == "reimbursed"
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        assert mates.settled(finn.share) == "refunded"
        page = words(lead.get())
        assert rows(page) == [("Taken", "£90.00"), ("Back when Finn paid", "−£90.00")]
        assert "<h1>Refunded</h1>" in page and final_charge(page) == "£0.00"

    @pytest.mark.usefixtures("posted")
    def test_with_one_mate_reads_about_one_link(self, unpaid: Checkout) -> None:
        lea = Payer(unpaid)
        lea.pay(split="own", name=["Finn"], amount=["20"], your_name="Lea")
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk, rounds=3)
        assert "Your mate’s link has ended." in words(lea.get())


class TestAMate:
    def test_gets_the_share_refunded(self, lead: Payer, finn: Mate, order: Checkout) -> None:
        finn.pay()
        mates.settled(finn.share)
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        assert rows(words(finn.get())) == [("Taken", "£20.00"), ("On its way back", "−£20.00")]
        assert mates.settled(finn.share) == "refunded"
        page = words(finn.get())
        assert rows(page) == [("Taken", "£20.00"), ("Refunded", "−£20.00")] and final_charge(page) == "£0.00"
        assert "links have ended" not in page and "4242" not in page


@pytest.mark.rule("pay.honest_page", "refund.returned")
@pytest.mark.usefixtures("posted")
class TestRefundReturnedAfterItSettled:
    """A refund that a payer's bank has returned. The page of each payer is only about that payer's card."""

    def test_to_a_mates_card_is_shown_to_the_mate(self, lead: Payer, finn: Mate, order: Checkout) -> None:
        finn.pay(RETURNS)
        assert mates.settled(finn.share) == "reimbursed"
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        settle(order)
        assert finn.status() == "refunded" and "£20.00 goes back to your card" in words(finn.get())
        come_back()
        page = words(finn.get())
        assert "<h1>The refund was returned</h1>" in page and 'id="receipt"' in page
        assert (
            "Acme Tickets refunded £20.00, but your bank sent it back. You don’t need to do anything." in page
        )
        assert rows(page) == [
            ("Taken", "£20.00"),
            ("Refunded", "−£20.00"),
            ("Sent back by your bank", "£20.00"),
        ]
        assert "Still owed to you" in page and final_charge(page) == "£20.00"
        page = words(lead.get())
        assert "<h1>£70.00 goes back to your card</h1>" in page and final_charge(page) == "£0.00"
        assert "The refund was returned" not in page

    def test_to_the_leads_card_is_shown_to_the_lead(self, lea: Payer, reimbursed: Mate) -> None:
        order = reimbursed.share.checkout
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        settle(order)
        come_back()
        page = words(lea.get())
        assert "<h1>The refund was returned</h1>" in page and "but your bank sent it back." in page
        assert rows(page)[-1] == ("Sent back by your bank", final_charge(page))
        assert "Final charge" not in page and "Sent back</span>" not in page.partition("<h1>")[2]
        page = words(reimbursed.get())
        assert "<h1>£20.00 goes back to your card</h1>" in page and final_charge(page) == "£0.00"

    @pytest.mark.rule("share.borne")
    def test_of_a_reimbursement_is_shown_on_the_bill(self, lea: Payer, reimbursed: Mate) -> None:
        assert "Back on your card" in words(lea.get()) and "It is back on Lea’s card" in words(
            reimbursed.get()
        )
        come_back()
        page = words(lea.get())
        assert "Sent back" in page and "is sent again, or paid another way" in page
        assert "Your bank sent back £20.00 of your mates’ payments. You don’t need to do anything." in page
        assert "ack on your card" not in page and "is back on" not in page
        page = words(reimbursed.get())
        assert "It goes back to Lea’s card." in page and "is back on" not in page and "came back" not in page
        sending.send_again(returned(lea.checkout).pk, cause=CAUSE)
        assert "Sent back" in words(lea.get()), "it is on its way once more"
        Call.objects.filter(kind="refund").update(returns_at=None)
        settle(lea.checkout)
        assert "Back on your card" in words(lea.get()) and "It is back on Lea’s card" in words(
            reimbursed.get()
        )

    @pytest.mark.rule("bill.live")
    def test_of_a_reimbursement_updates_an_open_bill(self, lea: Payer) -> None:
        self.reimburse(lea, ["Finn", "Amy"])
        before = seen(words(lea.get()))
        assert lea.get("/bill", seen=before).status_code == 204
        come_back()
        answer = lea.get("/bill", seen=before)
        assert answer.status_code == 200 and "Sent back" in words(answer)

    @pytest.fixture
    def reimbursed(self, lea: Payer) -> Mate:
        return self.reimburse(lea, ["Finn"])

    def reimburse(self, lea: Payer, names: list[str]) -> Mate:
        """Let Finn pay his share, reimburse it to Lea's card, and return Finn's browser.

        Later, Lea's card returns every refund.
        """
        lea.pay(RETURNS, split="own", name=names, amount=["20"] * len(names), your_name="Lea")
        order = captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        finn = Mate(order.payment_requests.get(name="Finn"))
        finn.pay()
        settle(order)
        settle(order)
        assert finn.status() == "reimbursed"
        return finn


def test_a_stranger_sees_no_card(lead: Payer, finn: Mate, order: Checkout) -> None:
    finn.pay()
    mates.settled(finn.share)
    refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
    mates.settled(finn.share)
    for page in (words(Payer(order).get()), words(Mate(finn.share).get())):
        assert rows(page) == [] and "Finn" not in page and "ending" not in page and "refunded" in page
