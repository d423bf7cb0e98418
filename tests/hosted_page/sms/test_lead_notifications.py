"""Texts that notify leads about their mates: what they say, and when they are not sent."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.utils import timezone

from checkout import mate_shares, refunds
from checkout.models import Checkout, LeadNotification, PaymentRequest
from hosted_page import tasks
from hosted_page.models import SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import budgets, lead_notifications, limits, outbox, stopped_numbers
from payments import operator_stops
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import FINN, Mate, Payer, words
from tests.hosted_page.sms.test_outbox import Network, put, send_all

pytestmark = [pytest.mark.django_db, pytest.mark.rule("lead.told")]
LEAS = "+447700900123"


def texts(network: Network) -> list[str]:
    """Queue and send the due texts. Return all texts that the lead has received so far."""
    tasks.tell_leads()
    send_all()
    return [text for phone, text in network.sent.values() if phone == LEAS]


def a_day_before_the_end() -> None:
    LeadNotification.objects.filter(kind="links_end").update(due_at=timezone.now())
    PaymentRequest.objects.update(expires_at=timezone.now() + timedelta(hours=23))


def amys(order: Checkout) -> PaymentRequest:
    return order.payment_requests.get(position=3)


class TestRefusalByAMate:
    def test_is_sent_once(self, finn: Mate, order: Checkout, network: Network) -> None:
        finn.post("/decline")
        assert network.sent == {}, "no request sends"
        (text,) = texts(network)
        assert text.startswith(f"Finn said no to £20.00 at {order.merchant.name}.")
        assert text.endswith(f"/pay?id={order.pk}&sign_in=1"), "whoever is signed out is asked to sign in"
        finn.post("/decline")
        assert len(texts(network)) == 1
        assert list(budgets.counted_messages(SmsMessage.objects.filter(kind="lead"))), (
            "it keeps its place in the budgets"
        )

    def test_after_a_change_of_mind_is_sent_again(self, finn: Mate, network: Network) -> None:
        for count in (1, 2):
            finn.post("/decline")
            assert len(texts(network)) == count
            finn.post("/reconsider")
            assert len(texts(network)) == count

    def test_that_is_queued_is_not_sent_once_it_is_withdrawn(self, finn: Mate, network: Network) -> None:
        finn.post("/decline")
        tasks.tell_leads()
        finn.post("/reconsider")
        assert texts(network) == []
        finn.post("/decline")
        assert len(texts(network)) == 1, "one that was not sent is none of the four"

    def test_that_is_queued_and_repeated_is_sent_once(self, finn: Mate, network: Network) -> None:
        finn.post("/decline")
        tasks.tell_leads()
        finn.post("/reconsider")
        finn.post("/decline")
        assert len(texts(network)) == 1

    def test_without_a_share_any_more_is_not_sent(self, finn: Mate, network: Network) -> None:
        finn.post("/decline")
        LeadNotification.objects.filter(kind="declined").update(share_uuid=None)
        assert texts(network) == []

    def test_is_not_sent_if_the_lead_keeps_the_share(self, finn: Mate, network: Network) -> None:
        mate_shares.cancel(finn.share.pk)
        assert texts(network) == []


class TestAllHavePaid:
    def test_is_sent_when_the_last_mate_has_paid(self, finn: Mate, order: Checkout, network: Network) -> None:
        finn.pay()
        mates.settled(finn.share)
        assert texts(network) == []
        amy = Mate(amys(order))
        amy.sign_in("07700 900457")
        amy.give_card(mates.AMYS)
        mates.settled(amy.share)
        (text,) = texts(network)
        assert text.startswith("All your mates have paid their shares") and "£50.00 in total" in text

    def test_excludes_shares_that_the_lead_kept(self, finn: Mate, order: Checkout, network: Network) -> None:
        mate_shares.cancel(amys(order).pk)
        finn.pay()
        mates.settled(finn.share)
        (text,) = texts(network)
        assert text.startswith("Your mates have paid £20.00 at") and "No more shares are due" in text

    def test_is_not_sent_if_the_lead_keeps_the_last_share(
        self, finn: Mate, lead: Payer, order: Checkout, network: Network
    ) -> None:
        """If the lead herself covers the last unpaid share, she gets no text "Your mates have paid".

        She sees the change on the page.
        """
        finn.pay()
        mates.settled(finn.share)
        lead.post("/cancel-share", share=str(amys(order).pk))
        assert texts(network) == [] and "You cover it" in words(lead.get())


class TestTheLinksEnd:
    def test_is_announced_a_day_before(self, order: Checkout, network: Network) -> None:
        row = LeadNotification.objects.get()
        assert row.due_at == (amys(order).expires_at or row.due_at) - timedelta(days=1)
        assert texts(network) == []
        a_day_before_the_end()
        (text,) = texts(network)
        assert text.startswith(f"£50.00 at {order.merchant.name} is not paid yet")
        assert text.endswith("&sign_in=1#last-day"), "to what offers to remind them"
        assert len(texts(network)) == 1

    def test_announcement_moves_with_paused_links(self, order: Checkout, network: Network) -> None:
        LeadNotification.objects.update(due_at=timezone.now())
        assert texts(network) == []
        row = LeadNotification.objects.get()
        assert row.ended_at is None and row.due_at == (amys(order).expires_at or row.due_at) - timedelta(
            days=1
        )

    def test_is_not_announced_if_no_share_is_open(
        self, finn: Mate, order: Checkout, network: Network
    ) -> None:
        for share in order.payment_requests.all():
            mate_shares.cancel(share.pk)
        a_day_before_the_end()
        assert texts(network) == []


class TestNothingIsSent:
    def test_for_a_refunded_order(self, finn: Mate, order: Checkout, network: Network) -> None:
        finn.post("/decline")
        refunds.accept(order.merchant, order.pk, ref="r", cause=CAUSE)
        mates.pump(order.pk, rounds=3)
        order.refresh_from_db()
        assert order.status == "refunded"
        assert (
            texts(network) == []
            and not LeadNotification.objects.filter(kind="declined", ended_at=None).exists()
        )

    def test_of_a_queued_text_once_the_order_is_being_refunded(
        self, finn: Mate, order: Checkout, network: Network
    ) -> None:
        finn.post("/decline")
        tasks.tell_leads()
        refunds.accept(order.merchant, order.pk, ref="r", cause=CAUSE)
        assert texts(network) == []

    def test_for_a_stopped_shop(self, finn: Mate, order: Checkout, network: Network) -> None:
        finn.post("/decline")
        operator_stops.suspend(order.merchant, reason="A question.")
        assert texts(network) == []

    def test_beyond_the_limit_of_an_order(
        self, finn: Mate, order: Checkout, network: Network, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lead_notifications, "PER_CHECKOUT", 1)
        finn.post("/decline")
        Mate(amys(order)).post("/decline")
        assert (
            len(texts(network)) == 1
            and not LeadNotification.objects.filter(kind="declined", ended_at=None).exists()
        )

    @pytest.mark.django_db(transaction=True)
    def test_beyond_the_limit_by_two_workers_at_once(
        self, finn: Mate, order: Checkout, network: Network, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        finn.post("/decline")
        Mate(amys(order)).post("/decline")
        find_words, save, together = (
            lead_notifications._write_text,
            SmsMessage.save,
            threading.Barrier(2, timeout=10),
        )

        def meet(row: LeadNotification, checkout: Checkout, shares: list[PaymentRequest]) -> str:
            together.wait()
            return find_words(row, checkout, shares)

        def lock_slowly(row: SmsMessage, **how: Any) -> None:
            # Without a lock, the other worker would count the texts during this pause, and miss this text.
            time.sleep(0.2)
            save(row, **how)

        def work(_: int) -> None:
            lead_notifications.queue_notifications()
            connection.close()

        monkeypatch.setattr(lead_notifications, "PER_CHECKOUT", 1)
        monkeypatch.setattr(lead_notifications, "_write_text", meet)
        monkeypatch.setattr(SmsMessage, "save", lock_slowly)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, range(2)))
        assert SmsMessage.objects.filter(kind=SmsMessage.Kind.LEAD).count() == 1
        assert not LeadNotification.objects.filter(kind="declined", ended_at=None).exists()

    @pytest.mark.rule("sms.stop")
    @pytest.mark.parametrize("when", ["before", "meanwhile"])
    def test_to_a_number_that_stopped_texts(self, finn: Mate, network: Network, when: str) -> None:
        if when == "before":
            Client().post(urlsplit(stopped_numbers.stop_link(outbox.number_digest(LEAS))).path)
        finn.post("/decline")
        tasks.tell_leads()
        Client().post(urlsplit(stopped_numbers.stop_link(outbox.number_digest(LEAS))).path)
        assert texts(network) == []

    def test_to_a_number_over_its_limit(self, finn: Mate, lead: Payer, network: Network) -> None:
        for _ in range(limits.PER_NUMBER[0].maximum):
            put(LEAS, PaymentTarget(lead.checkout), kind=SmsMessage.Kind.RETURN)
        finn.post("/decline")
        tasks.tell_leads()
        assert not SmsMessage.objects.filter(kind="lead").exists()
        assert not LeadNotification.objects.filter(kind="declined", ended_at=None).exists()


@pytest.mark.rule("lead.language")
class TestTheLanguage:
    @pytest.fixture
    def lead(self, unpaid: Checkout) -> Payer:
        """Return the browser of a lead who has paid on a page in French."""
        payer = Payer(unpaid)
        payer.client.cookies[settings.LANGUAGE_COOKIE_NAME] = "fr"
        payer.pay(split="own", name=["Finn", "Amy"], amount=["20", "30"], your_name="Lea")
        return payer

    def test_is_the_language_of_the_page_on_which_the_lead_paid(
        self, finn: Mate, order: Checkout, network: Network
    ) -> None:
        order.refresh_from_db()
        assert order.language == "fr"
        finn.post("/decline")
        (text,) = texts(network)
        assert text.startswith("Finn refuse 20,00")

    def test_of_an_invitation_is_the_leads(self, lead: Payer, finn: Mate, network: Network) -> None:
        lead.post("/text-share", share=str(finn.share.pk), phone=FINN)
        send_all()
        (text,) = network.sent.values()
        assert text[1].startswith("Lea vous demande 20,00")

    def test_of_a_code_is_the_pages(self, finn: Mate, network: Network) -> None:
        finn.client.cookies[settings.LANGUAGE_COOKIE_NAME] = "fr"
        finn.post("/phone", phone=FINN)
        send_all()
        (text,) = network.sent.values()
        assert "est votre code" in text[1]

    def test_is_not_stored_for_an_order_without_mates(self, unpaid: Checkout) -> None:
        payer = Payer(unpaid)
        payer.client.cookies[settings.LANGUAGE_COOKIE_NAME] = "fr"
        payer.pay()
        unpaid.refresh_from_db()
        assert unpaid.status == "authorized" and unpaid.language == ""


def test_no_notification_is_queued_for_an_order_without_mates(lea: Payer) -> None:
    lea.pay()
    assert not LeadNotification.objects.exists()
