"""The link in invitations and reminders with which a person stops further texts."""

import re
from urllib.parse import urlsplit

import pytest
from django.test import Client

from checkout.models import Checkout, PaymentRequest
from hosted_page.models import SmsMessage, SmsStop
from hosted_page.sms import outbox, sending, stopped_numbers
from tests.hosted_page.browsers import FINN, Payer, words
from tests.hosted_page.sms.test_outbox import Network, a_day_later, send_all

pytestmark = [pytest.mark.django_db, pytest.mark.rule("sms.stop")]
FINNS = "+447700900456"


@pytest.fixture
def share(lead: Payer, order: Checkout) -> PaymentRequest:
    return order.payment_requests.get(position=2)


def ask(lead: Payer, share: PaymentRequest, phone: str = FINN) -> str:
    return words(
        lead.client.post(f"/pay/text-share?id={share.checkout_id}", {"share": str(share.pk), "phone": phone})
    )


def stop_path(carrier: Network) -> str:
    """Return the path of the stop link in the last text that Finn got."""
    *_, text = [text for phone, text in carrier.sent.values() if phone == FINNS]
    found = re.search(r"No more texts: (\S+)$", text)
    assert found
    return urlsplit(found[1]).path


class TestAnInvitation:
    def test_and_each_reminder_contain_a_short_stop_link(
        self, lead: Payer, share: PaymentRequest, carrier: Network
    ) -> None:
        ask(lead, share)
        send_all()
        first = stop_path(carrier)
        assert first.startswith("/pay/stop/") and len(first) <= 50
        a_day_later()
        ask(lead, share, "")
        send_all()
        assert (
            len([1 for phone, _ in carrier.sent.values() if phone == FINNS]) == 2
            and stop_path(carrier) == first
        )

    def test_is_not_sent_to_a_number_that_stopped_texts(
        self, lead: Payer, share: PaymentRequest, carrier: Network
    ) -> None:
        ask(lead, share)
        send_all()
        client, path = Client(), stop_path(carrier)
        assert "Stop these texts?" in words(client.get(path)) and not SmsStop.objects.exists()
        for _ in range(2):
            assert client.post(path)["Location"] == path
        assert "These texts have stopped" in words(client.get(path))
        carrier.sent.clear()
        a_day_later()
        assert "This number has stopped our texts. Send the link yourself." in ask(lead, share, "")
        other = share.checkout.payment_requests.get(position=3)
        assert "This number has stopped our texts." in ask(lead, other)
        send_all()
        assert carrier.sent == {}

    def test_is_sent_again_to_a_number_that_allows_texts_again(
        self, lead: Payer, share: PaymentRequest, carrier: Network
    ) -> None:
        client, path = Client(), urlsplit(stopped_numbers.stop_link(outbox.number_digest(FINNS))).path
        client.post(path)
        assert "Send me these texts again" in words(client.get(path))
        for _ in range(2):
            assert client.post(path, {"again": "1"})["Location"] == path
        assert "Stop these texts?" in words(client.get(path))
        ask(lead, share)
        send_all()
        assert FINNS in [phone for phone, _ in carrier.sent.values()]

    def test_that_is_queued_is_not_sent_after_a_stop(
        self, lead: Payer, share: PaymentRequest, carrier: Network
    ) -> None:
        ask(lead, share)
        carrier.sent.clear()
        Client().post(urlsplit(stopped_numbers.stop_link(outbox.number_digest(FINNS))).path)
        send_all()
        assert carrier.sent == {} and SmsMessage.objects.get(kind="invitation").sent_at is None

    def test_is_still_sent_to_other_numbers(
        self, lead: Payer, share: PaymentRequest, carrier: Network
    ) -> None:
        Client().post(urlsplit(stopped_numbers.stop_link(outbox.number_digest("+447700900457"))).path)
        ask(lead, share)
        send_all()
        assert FINNS in [phone for phone, _ in carrier.sent.values()]


def test_sign_in_codes_are_still_sent_to_a_stopped_number(unpaid: Checkout, carrier: Network) -> None:
    Client().post(urlsplit(stopped_numbers.stop_link(outbox.number_digest(FINNS))).path)
    Payer(unpaid).post("/phone", phone=FINN)
    assert sending.claim() is not None


@pytest.mark.parametrize("token", ["x", "A" * 32, "%00", "é" * 8, "a" * 5000, "-_" * 16])
def test_an_unknown_link_is_a_404(token: str) -> None:
    assert Client().get(f"/pay/stop/{token}").status_code == 404
    assert Client().post(f"/pay/stop/{token}").status_code == 404
    assert not SmsStop.objects.exists()


def test_a_link_of_another_number_needs_its_own_signature() -> None:
    one, other = (
        urlsplit(stopped_numbers.stop_link(outbox.number_digest(phone))).path
        for phone in (FINNS, "+447700900457")
    )
    assert Client().get(one[:30] + other[30:]).status_code == 404
