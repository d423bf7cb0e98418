"""On the last day of the pay links, the lead can remind all unpaid mates with one tap on the bill."""

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from checkout.models import Checkout, PaymentRequest
from hosted_page.sms import outbox, stopped_numbers
from tests import mates
from tests.hosted_page.browsers import FINN, Mate, Payer, words
from tests.hosted_page.group.test_bill import seen, text
from tests.hosted_page.sms.test_outbox import Network, a_day_later, send_all

pytestmark = [pytest.mark.django_db, pytest.mark.rule("share.last_day")]
FINNS, AMYS = "+447700900456", "+447700900457"


@pytest.fixture
def order_with_texts(lead: Payer, order: Checkout, network: Network) -> Checkout:
    """Return an order whose mates, Finn and Amy, got their pay links by text more than a day ago."""
    for position, phone in ((2, FINN), (3, "07700 900457")):
        share = order.payment_requests.get(position=position)
        lead.post("/text-share", share=str(share.pk), phone=phone)
    send_all()
    network.sent.clear()
    a_day_later()
    return order


def ends_in(**left: int) -> None:
    PaymentRequest.objects.update(expires_at=timezone.now() + timedelta(**left))


def offer_text(page: str) -> str:
    """Return the text of the offer to remind the mates, "" if the page has no such offer."""
    return text(page.partition('class="last-day"')[2].partition("</section>")[0])


def tap(lead: Payer, network: Network) -> set[str]:
    answer = lead.post("/remind")
    assert answer.status_code == 303 and answer["Location"].endswith("#last-day")
    send_all()
    return {phone for phone, _ in network.sent.values()}


class TestTheReminderOffer:
    def test_is_on_the_bill_only_on_the_last_day(self, lead: Payer, order_with_texts: Checkout) -> None:
        ends_in(days=1, minutes=1)
        assert offer_text(words(lead.get())) == ""
        ends_in(hours=23, minutes=59)
        assert (
            "£50.00 is not paid yet. You cover any share that is not paid before the links expire."
            in offer_text(words(lead.get()))
        )
        assert "Remind 2 mates by text" in offer_text(words(lead.get()))

    def test_sends_no_reminder_automatically(
        self, lead: Payer, order_with_texts: Checkout, network: Network
    ) -> None:
        ends_in(hours=2)
        lead.get()
        send_all()
        assert network.sent == {}

    def test_names_a_single_mate_and_those_without_a_number(
        self, lead: Payer, order_with_texts: Checkout
    ) -> None:
        order_with_texts.payment_requests.filter(position=3).update(phone="")
        ends_in(hours=2)
        offer = offer_text(words(lead.get()))
        assert (
            "Remind Finn by text, •••• 0456" in offer
            and "We have no number for Amy. Share the link below" in offer
        )

    def test_disappears_once_the_lead_keeps_all_shares(self, lead: Payer, order_with_texts: Checkout) -> None:
        for share in order_with_texts.payment_requests.all():
            lead.post("/cancel-share", share=str(share.pk))
        ends_in(hours=2)
        assert offer_text(words(lead.get())) == ""

    def test_is_updated_on_an_open_page(self, lead: Payer, finn: Mate, order_with_texts: Checkout) -> None:
        ends_in(hours=2)
        before = seen(words(lead.get()))
        finn.pay()
        mates.settled(finn.share)
        part = words(lead.get("/bill", seen=before))
        assert "£30.00 is not paid yet." in offer_text(part) and 'data-seen="£30.00 · Amy' in part


class TestATap:
    def test_reminds_all_who_have_not_paid_once_a_day(
        self, lead: Payer, order_with_texts: Checkout, network: Network
    ) -> None:
        ends_in(hours=23)
        assert tap(lead, network) == {FINNS, AMYS}
        network.sent.clear()
        hint = "You can send each mate one reminder a day. Reminder already requested for: Finn and Amy."
        assert hint in offer_text(words(lead.get()))
        assert tap(lead, network) == set()

    def test_does_not_remind_a_mate_who_has_paid(
        self, lead: Payer, finn: Mate, order_with_texts: Checkout, network: Network
    ) -> None:
        finn.pay()
        mates.settled(finn.share)
        send_all()
        network.sent.clear()
        ends_in(hours=23)
        assert tap(lead, network) == {AMYS}

    def test_reminds_the_others_if_one_number_has_stopped_texts(
        self, lead: Payer, order_with_texts: Checkout, network: Network
    ) -> None:
        Client().post(urlsplit(stopped_numbers.stop_link(outbox.number_digest(FINNS))).path)
        ends_in(hours=23)
        answer = lead.post("/remind")
        assert answer.status_code == 422
        assert "Finn: This number has stopped our texts. Send the link yourself." in words(answer)
        send_all()
        assert {phone for phone, _ in network.sent.values()} == {AMYS}

    def test_before_the_last_day_does_nothing(
        self, lead: Payer, order_with_texts: Checkout, network: Network
    ) -> None:
        assert tap(lead, network) == set()

    def test_is_only_for_the_lead_and_only_to_the_asked_mates(
        self, lead: Payer, finn: Mate, order_with_texts: Checkout, network: Network
    ) -> None:
        ends_in(hours=23)
        answer = finn.client.post(f"/pay/remind?id={order_with_texts.pk}")
        assert answer.status_code == 403 and "Sign in again" in words(answer)
        lead.post("/remind", phone="07700 900199", share="x")
        send_all()
        assert {phone for phone, _ in network.sent.values()} == {FINNS, AMYS}
