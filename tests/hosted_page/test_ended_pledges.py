"""The pages that a mate and the lead see after a pledge has ended."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from checkout import cancellations, captures, refunds
from checkout.group import pledging
from checkout.models import Checkout, PaymentRequest
from hosted_page.group import bill
from hosted_page.models import SmsMessage
from payments.models import Operation, Payment
from payments.providers.sandbox import fault_injection
from payments.providers.sandbox.models import Charge, Fault
from tests import factories, mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer, words
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.status.reading import plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]
SPLIT: dict[str, Any] = {
    **{"split": "own", "name": ["Finn", "Sam"], "amount": ["20", "30"]},
    **{"your_name": "Lea", "when": "first"},
}
NOT_TAKEN = (
    "Your share of £20.00 could not be taken from your Mastercard ending 4444, and the hold is released."
)
RELEASED = "The hold of £20.00 on your Mastercard ending 4444 is released."


def split(lead: Payer, **fields: Any) -> Any:
    return lead.client.post(f"/pay/split?id={lead.checkout.pk}", SPLIT | fields)


def after(lead: Payer, **fields: Any) -> str:
    """Change the split, and return the next page."""
    return plain(words(lead.client.post(f"/pay/split?id={lead.checkout.pk}", SPLIT | fields, follow=True)))


def share(order: Checkout, position: int) -> PaymentRequest:
    return order.payment_requests.get(position=position)


@pytest.fixture
def lead(unpaid: Checkout) -> Payer:
    """Return the browser of Lea, who asks Finn (£20.00) and Sam (£30.00) to pledge before she pays."""
    made = Payer(unpaid)
    made.sign_in()
    split(made)
    return made


@pytest.fixture
def finn(lead: Payer) -> Mate:
    """Return the browser of Finn, who has pledged."""
    made = Mate(share(lead.checkout, 2))
    made.pay()
    assert made.status() == "pledged"
    return made


def pay_and_capture(lead: Payer) -> Checkout:
    """Let Lea pay, and let the shop capture the order. The captures of the pledges are planned, but not sent."""
    card = {"number": "4242424242424242", "expiry": "08 / 49", "code": "123"}
    lead.client.get(lead.client.post(lead.get("/card")["Location"], card)["Location"])
    return captures.capture(lead.checkout.merchant, lead.checkout.pk, cause=CAUSE)


def lose_hold(lead: Payer, finn: Mate) -> None:
    """Let Finn's bank release the hold before it is captured."""
    pay_and_capture(lead)
    Charge.objects.filter(last4="4444").update(state="voided")
    assert mates.settled(finn.share) == "open"


@pytest.mark.rule("pledge.captured")
class TestAMateWhoseShareCouldNotBeTaken:
    def test_reads_it_at_the_card_step(self, lead: Payer, finn: Mate) -> None:
        lose_hold(lead, finn)
        page = plain(words(finn.client.get(finn.get("/card")["Location"])))
        assert f"You have not been charged {NOT_TAKEN} Try again, or use another card." in page

    def test_another_person_does_not_read_it(self, lead: Payer, finn: Mate) -> None:
        lose_hold(lead, finn)
        other = Mate(finn.share)
        SmsMessage.objects.all().delete()  # otherwise the share must wait for its next code
        other.sign_in("07700 900789")
        page = plain(words(other.client.get(other.get("/card")["Location"])))
        assert NOT_TAKEN not in page and "ending 4444" not in page and "Your bank declined" not in page

    def test_reads_that_the_hold_is_released_while_the_shop_is_stopped(self, lead: Payer, finn: Mate) -> None:
        lose_hold(lead, finn)
        factories.stop(lead.checkout.merchant)
        page = plain(words(finn.get()))
        assert "You have not been charged." in page and RELEASED in page

    def test_reads_it_at_the_group_link(self, lead: Payer) -> None:
        guest = Guest(lead.checkout)
        guest.take(2)
        guest.pay(2)
        lose_hold(lead, Mate(share(lead.checkout, 2)))
        PaymentRequest.objects.update(claim_digest="", claimed_until=None)  # the claim has expired
        page = plain(words(guest.get()))
        assert f"You have not been charged{NOT_TAKEN} Try again, or use another card." in page
        assert "Your share is not paid yet" in page and "Which share is yours?" not in page
        other = plain(words(Guest(lead.checkout).get()))
        assert NOT_TAKEN not in other and "Which share is yours?" in other

    def test_reads_at_the_group_link_that_the_kept_share_is_not_paid(self, lead: Payer) -> None:
        guest = Guest(lead.checkout)
        guest.take(2)
        guest.pay(2)
        PaymentRequest.objects.filter(position=3).update(status="cancelled")
        lose_hold(lead, Mate(share(lead.checkout, 2)))
        page = plain(words(guest.get()))
        assert "Your share is not paid yet" in page and f"You have not been charged{NOT_TAKEN}" in page
        assert "Not paid yet" in page and "Taken" not in page and "All shares are taken" not in page

    def test_reads_at_the_group_link_that_another_person_has_taken_it(self, lead: Payer) -> None:
        guest = Guest(lead.checkout)
        guest.take(2)
        guest.pay(2)
        lose_hold(lead, Mate(share(lead.checkout, 2)))
        PaymentRequest.objects.update(claim_digest="", claimed_until=None)  # the claim has expired
        Guest(lead.checkout).take(2)
        page = plain(words(guest.get()))
        assert f"{NOT_TAKEN} Someone else has taken this share. Take another, or ask Lea." in page
        assert "Try again" not in page and "Your share is not paid yet" not in page

    def test_reads_nothing_of_it_while_the_outcome_is_unknown(self, lead: Payer, finn: Mate) -> None:
        pay_and_capture(lead)
        fault_injection.set_fault(verb="capture", mode="done_then_reset", times=9)
        fault_injection.set_fault(verb="look_up", mode="down", times=9)
        mates.pump(lead.checkout.pk)
        page = plain(words(finn.get()))
        assert "Paying your share" in page and "released" not in page and "not been charged" not in page
        Operation.objects.filter(ended_at=None).update(created_at=mates.LONG_AGO)
        page = plain(words(finn.get()))
        assert "Your bank has not answered" in page and "Please don’t pay again." in page
        assert "You don’t have to wait here." in page and "This page updates automatically." in page
        assert "This takes a moment" not in page and "not been charged" not in page

    def test_reads_it_after_a_capture_that_never_arrived(self, lead: Payer, finn: Mate) -> None:
        order = pay_and_capture(lead)
        fault_injection.set_fault(verb="capture", mode="down", times=1)
        mates.pump(order.pk)
        assert Operation.objects.filter(kind="capture", state="unknown").exists()
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        mates.settled(finn.share)
        assert Operation.objects.filter(kind="capture", reason="never_arrived").exists()
        assert RELEASED in plain(words(finn.get()))


@pytest.mark.rule("pledge.page")
class TestTheLeadOfOneMate:
    def test_reads_about_one_share(self, unpaid: Checkout) -> None:
        lea = Payer(unpaid)
        lea.sign_in()
        split(lea, name=["Finn"], amount=["20"])
        Mate(share(unpaid, 2)).pay()
        assert "Once Acme Tickets confirms, we take your mate’s share" in plain(words(lea.get()))
        cancellations.cancel(unpaid.merchant, unpaid.pk, cause=CAUSE)
        assert "Your mate has not been charged." in plain(words(lea.get()))


@pytest.mark.rule("pledge.captured")
class TestTheLeadWhoseMatesSharesAreBeingTaken:
    def test_is_not_offered_the_link_if_no_share_is_free(
        self, lead: Payer, finn: Mate, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sam = Mate(share(lead.checkout, 3))
        sam.sign_in("07700 900457")
        sam.give_card(mates.AMYS)
        pay_and_capture(lead)
        page = plain(words(lead.get()))
        assert page.count("Being taken") == 2 and "Paying" not in page
        assert "We are taking your mates’ shares. Each share goes back to your Visa ending 4242." in page
        assert "One link for everyone" not in page and "Links work until" not in page
        monkeypatch.setattr(bill, "LATE_ANSWER", timedelta(0))
        page = plain(words(lead.get()))
        assert "The bank has not answered about your mates’ shares yet. We keep asking." in page

    def test_is_offered_the_link_for_a_free_share(self, lead: Payer, finn: Mate) -> None:
        pay_and_capture(lead)
        page = plain(words(lead.get()))
        assert page.count("Being taken") == 1 and "One link for everyone" in page
        assert "When a mate pays, their share goes back to your Visa ending 4242." in page

    def test_reads_that_a_mate_who_pays_late_is_paying(self, lead: Payer) -> None:
        pay_and_capture(lead)
        PaymentRequest.objects.filter(position=2).update(status="paying")
        page = plain(words(lead.get()))
        assert "Paying" in page and "Being taken" not in page and "One link for everyone" in page


@pytest.mark.rule("pledge.captured")
class TestTheLeadWhoseMatesShareCouldNotBeTaken:
    def test_reads_that_the_share_is_open_again(self, lead: Payer) -> None:
        guest = Guest(lead.checkout)
        guest.take(2)
        guest.pay(2)
        lose_hold(lead, Mate(share(lead.checkout, 2)))
        assert share(lead.checkout, 2).is_kept(timezone.now()), "for Finn, who can try again"
        page = words(lead.get())
        line = page.split(f'id="share-{share(lead.checkout, 2).pk}"')[1].split("</li>")[0]
        line = plain(line.split(">", 1)[1])
        assert "Not paid yet The share is open again." in line and "could not be charged" not in line
        assert "Taken" not in line and "kept until" not in line
        block = plain(page.split('id="not-taken"')[1].split("</section>")[0])
        assert "Finn’s share could not be taken" in block and "Finn’s card could not be charged." in block
        assert "You cover the £20.00 until then." in block
        assert "Copy their link" in block and "Yes, I’ll cover it" in block

    def test_reads_that_another_person_has_taken_it(self, lead: Payer) -> None:
        guest = Guest(lead.checkout)
        guest.take(2)
        guest.pay(2)
        lose_hold(lead, Mate(share(lead.checkout, 2)))
        PaymentRequest.objects.update(claim_digest="", claimed_until=None)  # the claim has expired
        Guest(lead.checkout).take(2)
        page = plain(words(lead.get()))
        assert "Taken kept until" in page and "could not be charged" not in page

    def test_reads_nothing_of_it_once_the_mate_has_paid(self, lead: Payer, finn: Mate) -> None:
        lose_hold(lead, finn)
        assert "Finn’s share could not be taken" in plain(words(lead.get()))
        finn.give_card()
        page = plain(words(lead.get()))
        assert "could not be taken" not in page and "could not be charged" not in page

    def test_reads_nothing_of_it_after_covering_the_share(self, lead: Payer, finn: Mate) -> None:
        lose_hold(lead, finn)
        lead.post("/cancel-share", share=str(finn.share.pk))
        page = plain(words(lead.get()))
        assert "You cover it" in page and "could not be" not in page


@pytest.mark.rule("pay.honest_page")
class TestAMateWhoseBankHasNotAnswered:
    @pytest.fixture
    def silent(self, lead: Payer) -> Mate:
        """Return the browser of Finn, whose bank has not answered yet when the order ends."""
        made = Mate(share(lead.checkout, 2))
        made.sign_in()
        for verb in ("authorize", "look_up"):
            fault_injection.set_fault(
                verb=verb, mode="done_then_reset" if verb == "authorize" else "down", times=9
            )
        made.give_card()
        assert made.status() == "paying"
        factories.make_late(lead.checkout)
        lead.get()
        return made

    def test_reads_no_promise_before_the_bank_answers(self, silent: Mate) -> None:
        page = plain(words(silent.get()))
        assert "You have not been charged" in page and "is released" not in page
        assert "Your bank has not answered yet. If it holds £20.00 on your card, we release the hold." in page

    def test_reads_that_the_hold_is_released_once_the_bank_has_answered(self, silent: Mate) -> None:
        Fault.objects.all().delete()
        mates.settled(silent.share)
        assert Payment.objects.get(subject=silent.share.pk).status == "voided"
        page = plain(words(silent.get()))
        assert RELEASED in page and "not answered" not in page


@pytest.mark.rule("pledge.ends")
class TestTheLeadWhoseMatesWereIn:
    RELEASED = "Your mates have not been charged. Any hold on their cards is released."

    def test_reads_during_and_after_a_stop_that_the_holds_are_released(self, lead: Payer, finn: Mate) -> None:
        factories.stop(lead.checkout.merchant)
        pledging.end_of_stopped_merchant(lead.checkout.pk)
        assert self.RELEASED in plain(words(lead.get()))
        factories.stop(lead.checkout.merchant, is_stopped=False)
        page = plain(words(lead.get()))
        assert "Ask your mates again" in page
        assert (
            "Acme Tickets could not take payments for a while. The hold on Finn’s card is released." in page
        )
        assert "Please send the link again." in page
        page = plain(words(finn.client.get(finn.get("/card")["Location"])))
        assert "You are no longer in Acme Tickets could not take payments for a while." in page
        finn.give_card()
        assert finn.status() == "pledged" and "for a while" not in plain(words(lead.get()))

    def test_reads_that_the_holds_are_released_after_a_cancellation(self, lead: Payer, finn: Mate) -> None:
        cancellations.cancel(lead.checkout.merchant, lead.checkout.pk, cause=CAUSE)
        assert self.RELEASED in plain(words(lead.get()))
        assert self.RELEASED not in plain(words(Payer(lead.checkout).get()))

    def test_reads_that_the_holds_are_released_after_the_end_of_the_order(
        self, lead: Payer, finn: Mate
    ) -> None:
        factories.make_late(lead.checkout)
        assert self.RELEASED in plain(words(lead.get()))

    def test_reads_nothing_of_holds_if_no_mate_was_in(self, lead: Payer) -> None:
        cancellations.cancel(lead.checkout.merchant, lead.checkout.pk, cause=CAUSE)
        assert "Your mates" not in plain(words(lead.get()))


@pytest.mark.rule("pledge.split_changes")
class TestTheLeadWhoChangesTheSplit:
    def test_reads_once_whose_hold_is_released(self, lead: Payer, finn: Mate) -> None:
        page = after(lead, amount=["25", "30"])
        assert "You changed the split" in page and "Please send the link again." in page
        assert "The hold on Finn’s card is released. They can take the new share with the same link." in page
        assert "You changed the split" not in plain(words(lead.get()))

    def test_reads_the_names_of_all(self, lead: Payer, finn: Mate) -> None:
        SmsMessage.objects.all().delete()
        sam = Mate(share(lead.checkout, 3))
        sam.pay(mates.AMYS)
        assert sam.status() == "pledged"
        page = after(lead, amount=["25", "25"])
        assert "The holds on the cards of Finn and Sam are released. They can take their new shares" in page

    def test_reads_the_name_that_a_mate_gave_at_the_group_link(self, lead: Payer) -> None:
        split(lead, name=["Finn", ""])
        guest = Guest(lead.checkout)
        guest.take(3, name="Kim")
        guest.pay(3)
        assert "The hold on Kim’s card is released" in after(lead, name=["Finn", ""], amount=["20", "35"])

    def test_reads_it_at_the_card_step(self, lead: Payer, finn: Mate) -> None:
        page = after(lead, split="all")
        assert "Pay by card" in page and "You changed the split" in page
        assert "The hold on Finn’s card is released." in page and "link again" not in page

    def test_is_not_asked_to_send_the_link_on_a_page_without_it(self, lead: Payer, finn: Mate) -> None:
        page = after(lead, when="now", amount=["25", "30"])
        assert "Pay by card" in page and "They can take the new share with the same link" in page
        assert "send the link again" not in page

    def test_does_not_read_that_a_mate_without_a_share_can_take_one(self, lead: Payer, finn: Mate) -> None:
        page = after(lead, name=["Bo", "Sam"], amount=["25", "30"])
        assert "The hold on Finn’s card is released." in page and "Please send" not in page

    def test_reads_nothing_after_a_corrected_name(self, lead: Payer, finn: Mate) -> None:
        page = after(lead, name=["Phin", "Sam"])
        assert "You changed the split" not in page and "Phin" in page and finn.status() == "pledged"

    def test_reads_nothing_if_no_hold_has_ended(self, lead: Payer, finn: Mate) -> None:
        assert "You changed the split" not in after(lead, amount=["20", "35"])

    def test_does_not_read_of_an_earlier_change_again(self, lead: Payer, finn: Mate) -> None:
        after(lead, amount=["25", "30"])
        assert "You changed the split" not in after(lead, amount=["25", "35"])

    def test_does_not_read_of_a_mate_who_is_in_again(self, lead: Payer, finn: Mate) -> None:
        page = split(lead, amount=["25", "30"])["Location"]
        assert page.endswith("&changed=1")
        finn.give_card()
        assert finn.status() == "pledged"
        assert "You changed the split" not in plain(words(lead.client.get(page)))


def test_an_abandoned_card_of_a_stopped_order_is_not_promised(lead: Payer) -> None:
    """A mate abandons a card whose bank does not answer, and then the shop is stopped.

    The page says that the hold is released, if there is one.
    """
    made = Mate(share(lead.checkout, 2))
    made.sign_in()
    for verb in ("authorize", "look_up"):
        fault_injection.set_fault(verb=verb, mode="down", times=9)
    made.give_card()
    Operation.objects.update(created_at=Operation.objects.get().created_at - timedelta(minutes=2))
    made.post("/another-card")
    assert made.status() == "open"
    factories.stop(lead.checkout.merchant)
    page = plain(words(made.get()))
    assert "If it holds £20.00 on your card, we release the hold." in page
