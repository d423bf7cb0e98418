"""The bill, the links and the texts of a split order during and after a dispute about a payment."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone, translation
from pytest_django.fixtures import Settings

from checkout import mate_shares
from checkout.models import Checkout, GroupLink, LeadNotification, PaymentRequest
from checkout.states import ShareStatus
from config.lib import clock
from hosted_page import tasks
from hosted_page.models import SmsMessage
from hosted_page.sms import invitations
from payments.models import Dispute
from tests import mates
from tests.hosted_page.browsers import FINN, Mate, Payer, words
from tests.hosted_page.group.test_bill import seen, text
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.sms.test_outbox import Network, a_day_later, send_all
from tests.outside import decide, dispute

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("posted"),
    pytest.mark.rule("share.pauses"),
]
LOOKS = "Your bank is reviewing your payment of £90.00. You don’t need to do anything."
OFFERS = (
    "One link for everyone",
    "Text it to a number",
    "Remind ",
    "Links work until",
    "own link",
    "/pay/share/",
)


def disputed(order: Checkout) -> Dispute:
    """Dispute the lead's payment, and return the dispute."""
    return dispute(order.payment)


def offered(page: str) -> list[str]:
    return [offer for offer in OFFERS if offer in page]


def main(answer: Any) -> str:
    """Return the HTML of a page, starting at its <main> element."""
    return words(answer).partition("<main")[2]


class TestTheBill:
    def test_says_that_it_is_paused_and_offers_no_link(
        self, lead: Payer, finn: Mate, order: Checkout
    ) -> None:
        lead.post("/text-share", share=str(finn.share.pk), phone=FINN)
        a_day_later()
        PaymentRequest.objects.update(expires_at=timezone.now() + timedelta(hours=2))
        assert offered(main(lead.get())) == list(OFFERS)
        found = disputed(order)
        page = main(lead.get())
        assert offered(page) == [] and 'class="last-day"' not in page
        assert LOOKS in text(page) and "Paused for now" in page
        assert text(page).count("Not paid yet") == 0 and len(
            re.findall(r"Paused(?! for now)", text(page))
        ) == len(order.payment_requests.all())
        assert "No share can be paid until the bank has decided." in page
        assert "Rename" in page and "Cover" in page, "what needs no link stays"
        decide(found, is_won=True)
        page = main(lead.get())
        assert offered(page) == list(OFFERS) and "Paused" not in page and LOOKS not in page
        assert "Not paid yet" in text(page)

    @pytest.mark.rule("bill.live")
    def test_that_is_open_shows_a_new_dispute(self, lead: Payer, finn: Mate, order: Checkout) -> None:
        page = words(lead.get())
        row = rf'id="share-{finn.share.pk}" data-part data-seen="([^"]*)"'
        found = disputed(order)
        answer = lead.get("/bill", seen=seen(page), no="")
        assert (
            answer.status_code == 200 and "Paused for now" in words(answer) and offered(words(answer)) == []
        )
        assert re.findall(row, page) != re.findall(row, words(answer)), "the row is put in anew"
        assert lead.get("/bill", seen=seen(words(answer)), no="").status_code == 204
        decide(found, is_won=True)
        after = lead.get("/bill", seen=seen(words(answer)), no="")
        assert after.status_code == 200 and "One link for everyone" in words(after)

    def test_does_not_allow_to_ask_a_mate_again_during_a_dispute(
        self, lead: Payer, finn: Mate, order: Checkout
    ) -> None:
        finn.post("/decline")
        found = disputed(order)
        page = main(lead.get())
        assert 'id="said-no"' not in page and "Yes, ask again" not in page and "Said no" in page
        refused = lead.post("/ask-again", share=str(finn.share.pk))
        assert refused.status_code == 422 and "the share was not changed" in words(refused)
        assert finn.status() == ShareStatus.DECLINED
        decide(found, is_won=True)
        assert 'id="said-no"' in main(lead.get())

    def test_says_that_paid_shares_wait_for_the_bank(
        self, lead: Payer, finn: Mate, order: Checkout, settings: Settings
    ) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
        mates.pay(finn.share)
        mates.pump(order.pk)
        mate_shares.cancel(order.payment_requests.get(position=3).pk)
        disputed(order)
        page = text(main(lead.get()))
        assert "waits for the bank" in page and "goes back by" not in page
        assert "A bank is reviewing a payment for this order. You don’t need to do anything." in page, (
            "not whose"
        )
        assert "Your mates’ payments can go to your card only after the bank has decided." in page
        assert "No share can be paid" not in page, "nobody is asked"

    def test_of_a_lost_dispute_says_that_mates_are_no_longer_asked(
        self, lead: Payer, finn: Mate, order: Checkout
    ) -> None:
        finn.post("/decline")
        decide(disputed(order), is_won=False)
        page = main(lead.get())
        assert "Your mates are no longer asked to pay." in page and "Paused for now" not in page
        assert "Your bank gave you £90.00 back" in text(page) and "Confirmed and paid" not in page
        assert "How you split it" in page
        assert re.search(r"Your bank gave you £90\.00 back, \w+ \d+ \w+, \d\d:\d\d", text(page)), (
            "beside the receipt"
        )
        assert (
            "Yes, ask again" not in page
            and "so this amount stays on your" not in page
            and offered(page) == []
        )

    @pytest.mark.rule("dispute.lost")
    def test_of_a_lost_dispute_does_not_say_who_covers_a_share(
        self, lead: Payer, finn: Mate, order: Checkout
    ) -> None:
        """After a lost dispute about the lead's payment, the bill does not say who covers which share.

        The lead covers no amount, because her bank has returned the whole payment to her card.
        """
        finn.post("/decline")
        found = disputed(order)
        assert "you cover it" in text(main(lead.get()))
        decide(found, is_won=False)
        page = text(main(lead.get()))
        assert "Said no" in page and "Cancelled" in page
        assert not re.findall("[Yy]ou cover|You’re covering|Yours|Still due|Adds up", page)

    def test_of_a_lost_dispute_with_an_expired_link_does_not_say_who_covers_the_share(
        self, lead: Payer, finn: Mate, order: Checkout
    ) -> None:
        PaymentRequest.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert "you cover it" in text(main(lead.get())) and "covers your share" in text(main(finn.get()))
        decide(disputed(order), is_won=False)
        assert "Link expired" in main(lead.get()) and "you cover it" not in text(main(lead.get()))
        assert "This link has expired" in main(finn.get()) and "covers your share" not in text(
            main(finn.get())
        )

    @pytest.mark.rule("bill.live")
    def test_of_a_lost_dispute_reloads_once(self, lead: Payer, finn: Mate, order: Checkout) -> None:
        before = seen(words(lead.get()))
        decide(disputed(order), is_won=False)
        assert lead.get("/bill", seen=before, no="")["HX-Refresh"] == "true"
        after = seen(words(lead.get()))
        assert lead.get("/bill", seen=after, no="").status_code == 204, "once"

    def test_of_a_lost_dispute_tells_a_mate_that_nothing_is_due(self, finn: Mate, order: Checkout) -> None:
        decide(disputed(order), is_won=False)
        page = text(main(finn.get()))
        assert "You are no longer asked to pay" in page and finn.status() == "cancelled"
        told = (
            "You have not been charged. A bank has returned a payment for this order."
            " Ask Lea whether the order is still valid."
        )
        assert told in page and "anything else" not in page

    @pytest.mark.rule("page.language")
    @pytest.mark.parametrize("language", [code for code, _ in settings.LANGUAGES if code != "en-gb"])
    def test_of_a_lost_dispute_tells_a_mate_in_each_language(
        self, finn: Mate, order: Checkout, language: str
    ) -> None:
        decide(disputed(order), is_won=False)
        finn.client = Client(headers={"accept-language": language})
        page = text(main(finn.get()))
        with translation.override(language):
            assert translation.gettext("You have not been charged.") in page
        assert "You have not been charged" not in page

    @pytest.mark.rule("group.link")
    def test_does_not_show_the_group_qr_code_during_a_dispute(self, lead: Payer, order: Checkout) -> None:
        path = f"/pay/g/{GroupLink.objects.get(checkout=order).token}/qr"
        assert lead.client.get(path).status_code == 200
        disputed(order)
        answer = lead.client.get(path)
        assert answer.status_code == 303 and answer["Location"] == f"/pay?id={order.pk}"


class TestTextsDuringADispute:
    def test_are_not_sent_to_a_mate(self, lead: Payer, finn: Mate, order: Checkout, network: Network) -> None:
        disputed(order)
        answer = lead.post("/text-share", share=str(finn.share.pk), phone=FINN)
        assert answer.status_code == 303 and not SmsMessage.objects.exists()
        with pytest.raises(invitations.CannotSendNow):
            invitations.send(finn.share.pk, phone="+447700900456", address="127.0.0.1")

    @pytest.mark.rule("sms.outbox")
    def test_that_are_queued_are_not_sent_to_a_mate(
        self, lead: Payer, finn: Mate, order: Checkout, network: Network
    ) -> None:
        lead.post("/text-share", share=str(finn.share.pk), phone=FINN)
        found = disputed(order)
        send_all()
        assert network.sent == {}
        decide(found, is_won=True)
        assert "Text it to a number" in main(lead.get()), "she may ask again"
        lead.post("/text-share", share=str(finn.share.pk), phone=FINN)
        send_all()
        assert len(network.sent) == 1

    @pytest.mark.rule("lead.told")
    @pytest.mark.parametrize("kind", ["links_end", "declined"])
    def test_to_the_lead_wait_for_the_banks_decision(
        self, finn: Mate, order: Checkout, network: Network, kind: str
    ) -> None:
        if kind == "declined":
            finn.post("/decline")
        else:
            PaymentRequest.objects.update(expires_at=timezone.now() + timedelta(hours=23))
        LeadNotification.objects.filter(kind=kind).update(due_at=timezone.now())
        found = disputed(order)
        self.look(network)
        row = LeadNotification.objects.get(kind=kind)
        assert network.sent == {} and row.ended_at is None and row.due_at > clock.now()
        decide(found, is_won=True)
        LeadNotification.objects.filter(kind=kind).update(due_at=timezone.now())
        self.look(network)
        assert len(network.sent) == 1

    @pytest.mark.rule("lead.told")
    def test_that_are_queued_are_not_sent_to_the_lead(
        self, finn: Mate, order: Checkout, network: Network
    ) -> None:
        finn.post("/decline")
        tasks.tell_leads()
        disputed(order)
        send_all()
        assert network.sent == {}

    @pytest.mark.rule("lead.told")
    def test_to_the_lead_are_not_sent_after_a_lost_dispute(
        self, finn: Mate, order: Checkout, network: Network
    ) -> None:
        finn.post("/decline")
        decide(disputed(order), is_won=False)
        self.look(network)
        assert network.sent == {}

    def look(self, network: Network) -> None:
        tasks.tell_leads()
        send_all()


class TestTheGroupsLink:
    def test_works_again_once_the_bank_has_decided_for_the_shop(self, order: Checkout) -> None:
        found = disputed(order)
        for step in ("", "/qr"):
            page = main(Guest(order).client.get(Guest(order).path + step, follow=True))
            assert "A bank is reviewing a payment for this order" in page
            assert "Check now" in page and "not been charged" not in page, "a stranger might have paid"
            assert "paid by" not in page, "perhaps it is not"
        decide(found, is_won=True)
        assert "looking into" not in main(Guest(order).get()) and "free" in main(Guest(order).get())

    def test_says_that_a_mate_with_an_unpaid_share_has_not_been_charged(self, order: Checkout) -> None:
        guest = Guest(order)
        guest.take(3, name="Amy")
        disputed(order)
        assert "You have not been charged. A bank is reviewing" in text(main(guest.get()))

    def test_has_ended_after_a_lost_dispute(self, order: Checkout) -> None:
        decide(disputed(order), is_won=False)
        page = main(Guest(order).get())
        assert "looking into" not in page and "works again" not in page and "Check now" not in page
        assert "Shares can no longer be paid" in page and "No more payments are needed" in page
        assert "A bank has returned a payment for this order." in page and "paid by" not in page

    def test_of_a_mate_says_that_the_mates_own_payment_is_reviewed(self, finn: Mate, order: Checkout) -> None:
        finn.pay()
        assert mates.settled(finn.share) == "reimbursed"
        assert "back on Lea’s card" in main(finn.get())
        found = dispute(finn.share.payment)
        page = main(finn.get())
        assert "Your bank is reviewing your payment of £20.00." in page
        assert "back on Lea’s card" not in page and "settled up" not in page and "have paid" not in page
        decide(found, is_won=True)
        assert "back on Lea’s card" in main(finn.get())

    def test_of_a_mate_who_declined_offers_no_change_of_mind_during_a_dispute(
        self, finn: Mate, order: Checkout
    ) -> None:
        finn.post("/decline")
        assert "I’ve changed my mind" in main(finn.get())
        disputed(order)
        page = main(finn.get())
        assert "You said no" in page and "I’ve changed my mind" not in page
