"""The receipt by text: who can request it, how often it is sent, and which page its link opens."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout import captures
from checkout.models import Checkout
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import budgets, limits, outbox, stopped_numbers
from payments import operator_stops
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import FINN, PHONE, Mate, Payer, shown_code, words
from tests.hosted_page.group.test_bill import text
from tests.hosted_page.sms.test_outbox import Network, put, send_all
from tests.hosted_page.status.test_receipt import receipt

pytestmark = [pytest.mark.django_db, pytest.mark.rule("receipt.sms")]
LEAS, FINNS = "+447700900123", "+447700900456"


@pytest.fixture
def paid(lea: Payer, carrier: Network) -> Payer:
    """Return the browser of Lea, who has paid the whole order. The order is captured, and her code is an hour old."""
    lea.pay()
    captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
    drop_codes(carrier)
    return lea


def drop_codes(carrier: Network) -> None:
    SmsMessage.objects.all().delete()
    SignInCode.objects.update(created_at=timezone.now() - timedelta(hours=1))
    carrier.sent.clear()


def texts(carrier: Network, phone: str = LEAS) -> list[str]:
    send_all()
    return [said for number, said in carrier.sent.values() if number == phone]


def link(carrier: Network, phone: str = LEAS) -> str:
    (said,) = texts(carrier, phone)
    parts = urlsplit(said.rpartition(": ")[2])
    return f"{parts.path}?{parts.query}"


def open_receipt_link(client: Client, address: str, phone: str) -> Any:
    """Open the link, request a code and enter it. Return the page that the link then opens.

    If the page shows no code, enter 000000 instead.
    """
    path = urlsplit(address).path
    query = f"?{urlsplit(address).query}" if "id=" in address else ""
    assert "Sign in with the mobile number that you used to pay." in words(client.get(address))
    code_page = client.get(client.post(f"{path}/phone{query}", {"phone": phone})["Location"])
    client.post(f"{path}/code{query}", {"code": shown_code(code_page) or "000000"})
    return client.get(address)


class TestTheText:
    def test_goes_to_the_number_that_paid_when_it_is_asked_for(self, paid: Payer, carrier: Network) -> None:
        assert "Text it to •••• 0123" in text(words(paid.get()))
        answer = paid.post("/receipt")
        assert answer.status_code == 303 and answer["Location"] == f"/pay?id={paid.checkout.pk}#receipt"
        assert carrier.sent == {}, "no request sends"
        (said,) = texts(carrier)
        assert said.startswith("Your receipt from Acme Tickets, £90.00: http")
        assert said.endswith(f"/pay?id={paid.checkout.pk}&sign_in=1")
        assert list(budgets.counted_messages(SmsMessage.objects.filter(kind="receipt"))), "it keeps its place"

    def test_is_sent_once_and_a_second_tap_says_so(
        self, paid: Payer, carrier: Network, settings: Settings
    ) -> None:
        settings.SANDBOX = False
        for _ in range(2):
            assert paid.post("/receipt").status_code == 303
            assert "On its way to •••• 0123 by text. We text the receipt only once." in text(
                words(paid.get())
            )
        assert len(texts(carrier)) == 1
        paid.post("/receipt")
        assert "Texted to •••• 0123. We text the receipt only once." in text(words(paid.get()))
        assert len(texts(carrier)) == 1 and "Text it to" not in words(paid.get())
        assert mail.outbox == [], "nobody has proven an address here"

    def test_that_was_not_sent_can_be_requested_again(self, paid: Payer, carrier: Network) -> None:
        carrier.is_down = True
        paid.post("/receipt")
        send_all()
        assert "Text it to •••• 0123" in text(words(paid.get()))
        carrier.is_down = False
        paid.post("/receipt")
        assert len(texts(carrier)) == 1

    def test_can_be_requested_only_by_the_payer(self, paid: Payer, carrier: Network) -> None:
        stranger = Payer(paid.checkout)
        assert "Text it to" not in words(stranger.get())
        assert stranger.post("/receipt").status_code == 403
        assert texts(carrier) == []

    def test_is_not_available_before_the_capture(self, lea: Payer, carrier: Network) -> None:
        lea.pay()
        assert "Text it to" not in words(lea.get())
        carrier.sent.clear()
        assert lea.post("/receipt").status_code == 303
        assert not SmsMessage.objects.filter(kind="receipt").exists()

    def test_of_a_share_goes_to_its_mate_with_its_own_link(
        self, finn: Mate, order: Checkout, carrier: Network
    ) -> None:
        finn.pay()
        mates.settled(finn.share)
        drop_codes(carrier)
        assert "Text it to •••• 0456" in text(words(finn.get()))
        assert finn.post("/receipt")["Location"] == f"{finn.path}#receipt"
        assert link(carrier, FINNS) == f"{finn.path}?sign_in=1"
        assert next(iter(carrier.sent.values()))[1].startswith("Your receipt from Acme Tickets, £20.00:")
        assert Mate(finn.share).post("/receipt").status_code == 403

    def test_of_a_split_order_is_offered_on_the_bill(self, lead: Payer, order: Checkout) -> None:
        assert "Text it to •••• 0123" in text(words(lead.get()))

    def test_of_a_split_order_shows_a_refusal_next_to_both_receipts(
        self, lead: Payer, order: Checkout
    ) -> None:
        operator_stops.suspend(order.merchant, reason="A question.")
        page = words(lead.post("/receipt"))
        ids = re.findall(r' id="([^"]+)"', page)
        assert len(ids) == len(set(ids)) and {"receipt-title-error", "desk-receipt-title-error"} <= set(ids)
        described = re.findall(r'aria-(?:describedby|labelledby)="([^"]+)"', page)
        assert set(described) <= set(ids)


class TestItIsRefused:
    def refusal(self, paid: Payer, carrier: Network) -> str:
        answer = paid.post("/receipt")
        assert answer.status_code == 422 and texts(carrier) == []
        return text(words(answer))

    @pytest.mark.rule("sms.stop")
    def test_to_a_number_that_stopped_texts(self, paid: Payer, carrier: Network) -> None:
        Client().post(urlsplit(stopped_numbers.stop_link(outbox.number_digest(LEAS))).path)
        said = self.refusal(paid, carrier)
        assert "This number has stopped our texts, except for codes. Print the receipt." in said

    @pytest.mark.rule("sms.stop")
    def test_to_a_number_that_stops_texts_before_the_send(self, paid: Payer, carrier: Network) -> None:
        paid.post("/receipt")
        Client().post(urlsplit(stopped_numbers.stop_link(outbox.number_digest(LEAS))).path)
        assert texts(carrier) == []

    def test_to_a_number_over_its_limit(self, paid: Payer, carrier: Network) -> None:
        for _ in range(limits.PER_NUMBER[0].maximum):
            put(LEAS, PaymentTarget(paid.checkout), kind=SmsMessage.Kind.RETURN)
            SmsMessage.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        answer = paid.post("/receipt")
        assert answer.status_code == 422
        assert "We cannot send more texts to this number now. Try again in an hour." in text(words(answer))
        assert not SmsMessage.objects.filter(kind="receipt").exists()

    def test_for_a_stopped_shop(self, paid: Payer, carrier: Network) -> None:
        operator_stops.suspend(paid.checkout.merchant, reason="A question.")
        assert "We cannot send texts for this shop now." in self.refusal(paid, carrier)


@pytest.mark.rule("sign_in.payer_returns", "page.receipt")
class TestTheLink:
    def test_leads_the_number_that_paid_to_the_receipt(self, paid: Payer, carrier: Network) -> None:
        paid.post("/receipt")
        address = link(carrier)
        drop_codes(carrier)
        page = words(open_receipt_link(Client(), address, PHONE))
        assert receipt(page)[:3] == ["Receipt", "Paid to", "Acme Tickets"] and "Text it to" in text(page)

    def test_leads_no_other_number_to_the_receipt(self, paid: Payer, carrier: Network) -> None:
        address = f"/pay?id={paid.checkout.pk}&sign_in=1"
        client = Client()
        page = words(open_receipt_link(client, address, FINN))
        assert receipt(page) == [] and texts(carrier, FINNS) == []
        code_page = text(words(client.get(address)))
        assert "if that number was used to pay and has not received too many texts" in code_page

    def test_leads_to_the_receipt_of_a_refunded_order(self, paid: Payer, carrier: Network) -> None:
        mates.give_back(paid.checkout)
        mates.pump(paid.checkout.pk, rounds=3)
        paid.checkout.refresh_from_db()
        assert paid.checkout.status == "refunded"
        drop_codes(carrier)
        page = words(open_receipt_link(Client(), f"/pay?id={paid.checkout.pk}&sign_in=1", PHONE))
        assert "£90.00 goes back to your card" in text(page)
        assert receipt(page)[:3] == ["Receipt", "Paid to", "Acme Tickets"]
        assert page.count('id="print"') == 1
        assert page.index('id="receipt"') < page.index('id="print"'), "with the receipt's other way out"

    @pytest.mark.parametrize("is_refunded", [False, True])
    def test_of_a_share_leads_only_its_mate_to_the_receipt(
        self, finn: Mate, order: Checkout, carrier: Network, is_refunded: bool
    ) -> None:
        finn.pay()
        mates.settled(finn.share)
        if is_refunded:
            mates.give_back(order)
            mates.pump(order.pk, rounds=5)
            assert finn.status() == "refunded"
        drop_codes(carrier)
        address = f"{finn.path}?sign_in=1"
        assert "Sign in to see your receipt" in words(Client().get(finn.path))
        assert receipt(words(open_receipt_link(Client(), address, PHONE))) == []
        assert receipt(words(open_receipt_link(Client(), address, FINN)))[0] == "Receipt"

    def test_shows_a_signed_in_payer_the_receipt_at_once(self, paid: Payer) -> None:
        assert receipt(words(paid.get(sign_in="1")))[0] == "Receipt"
