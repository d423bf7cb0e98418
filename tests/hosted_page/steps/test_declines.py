"""Limits on declined cards. They prevent criminals from testing stolen cards here.

Declined cards are counted per phone number and per IP address, across all orders.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone

from checkout import authorizations
from checkout.models import Checkout, Customer
from config.lib import clock
from config.lib.quota import Limit
from hosted_page import tasks
from hosted_page.models import CardTry, SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.steps import card, declines
from payments.models import Merchant, Payment
from payments.provider import CardUse
from payments.providers.sandbox import fault_injection
from tests import factories
from tests.conftest import Api
from tests.hosted_page.browsers import PHONE, Mate, Payer, words

pytestmark = pytest.mark.django_db
LEA = "+447700900123"
GOOD, DECLINED, CHALLENGE = "4242424242424242", "4000000000000002", "4000002500003155"


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declines, "PER_PHONE", Limit(3, timedelta(days=1)))
    monkeypatch.setattr(declines, "PER_ADDRESS", Limit(5, timedelta(hours=1)))


@pytest.fixture
def new(acme: Merchant) -> Callable[..., Payer]:
    """Return a function that creates an order and signs in its payer.

    The function's arguments are the payer's phone number and network address.
    """

    def create(phone: str = PHONE, at: str = "192.0.2.1") -> Payer:
        payer = Payer(factories.checkout(acme))
        payer.client.defaults["REMOTE_ADDR"] = at
        SmsMessage.objects.update(created_at=timezone.now() - timedelta(days=1))
        payer.sign_in(phone)
        payer.post("/split", split="all")
        return payer

    return create


def give(payer: Payer, number: str) -> Any:
    opened = payer.get("/card")
    return opened if opened.status_code != 302 else send(payer, opened["Location"], number)


def send(payer: Payer, page: str, number: str) -> Any:
    back = payer.client.post(page, {"number": number, "expiry": "08 / 49", "code": "123"})
    return payer.client.get(back["Location"])


class TestAPhone:
    @pytest.mark.rule("pay.declines")
    def test_has_a_daily_limit_of_declined_cards_over_all_orders(self, new: Callable[..., Payer]) -> None:
        for number in range(3):
            assert give(new(at=f"192.0.2.{number}"), DECLINED).status_code == 303
        refused = new(at="192.0.2.9").get("/card")
        assert refused.status_code == 429 and "Too many cards were declined" in words(refused)
        assert "You can order again in 24 hours." in words(refused)
        CardTry.objects.update(created_at=timezone.now() - timedelta(days=1))
        assert give(new(at="192.0.2.9"), GOOD).status_code == 303

    def test_over_the_limit_is_refused_on_an_open_card_page(self, new: Callable[..., Payer]) -> None:
        patient = new(at="192.0.2.9")
        opened = patient.get("/card")["Location"]
        for number in range(3):
            give(new(at=f"192.0.2.{number}"), DECLINED)
        refused = send(patient, opened, GOOD)
        assert "card_token" not in refused["Location"]
        assert patient.client.get(refused["Location"]).status_code == 429
        assert not Payment.objects.filter(subject=patient.checkout.pk).exists()

    def test_of_another_person_is_not_refused(self, new: Callable[..., Payer]) -> None:
        for number in range(3):
            give(new(at=f"192.0.2.{number}"), DECLINED)
        assert give(new("07700 900456", at="192.0.2.9"), GOOD).status_code == 303

    def test_counts_neither_payments_nor_unconfirmed_cards(self, new: Callable[..., Payer]) -> None:
        for number in range(4):
            give(new(at=f"192.0.2.{number}"), GOOD)
        for number in range(4):
            lea = new(at=f"192.0.2.{number}")
            give(lea, CHALLENGE)
            Payment.objects.filter(subject=lea.checkout.pk).update(
                status="declined", decline_reason="challenge_failed"
            )
        assert give(new(at="192.0.2.9"), GOOD).status_code == 303

    def test_counts_a_card_in_doubt_until_the_bank_answers(self, new: Callable[..., Payer]) -> None:
        fault_injection.set_fault(verb="authorize", mode="done_then_reset", times=3)
        for number in range(3):
            give(new(at=f"192.0.2.{number}"), GOOD)
        assert give(new(at="192.0.2.9"), GOOD).status_code == 429
        Payment.objects.filter(status="authorizing").update(status="authorized")
        assert give(new(at="192.0.2.9"), GOOD).status_code == 303


class TestAnAddress:
    @pytest.mark.rule("pay.declines")
    def test_has_an_hourly_limit_of_declined_cards_over_all_phones(self, new: Callable[..., Payer]) -> None:
        for number in range(5):
            assert give(new(f"07700 90020{number}", at=f"2001:db8::{number}"), DECLINED).status_code == 303
        refused = give(new("07700 900299", at="2001:db8::ffff:1"), GOOD)
        assert refused.status_code == 429 and "or try again in an hour." in words(refused)
        assert give(new("07700 900299", at="2001:db8:0:1::1"), GOOD).status_code == 303

    def test_over_the_limit_says_when_to_retry_if_the_order_is_valid_that_long(
        self, new: Callable[..., Payer]
    ) -> None:
        for number in range(5):
            give(new(f"07700 90020{number}"), DECLINED)
        Checkout.objects.update(payable_until=timezone.now() + timedelta(days=1))
        CardTry.objects.update(created_at=timezone.now() - timedelta(minutes=40))
        lasting = new("07700 900299")
        Checkout.objects.update(payable_until=timezone.now() + timedelta(days=1))
        assert "or try again in 20 minutes." in words(give(lasting, GOOD))


def test_a_card_that_was_not_tried_is_not_counted(new: Callable[..., Payer], acme: Merchant) -> None:
    lea = new()
    opened = lea.get("/card")["Location"]
    Checkout.objects.filter(pk=lea.checkout.pk).update(payable_until=timezone.now())
    send(lea, opened, DECLINED)
    assert not CardTry.objects.exists()


def test_the_helper_api_is_not_counted(api: Api, acme: Merchant) -> None:
    for _ in range(6):
        path = f"/api/sandbox/v1/checkouts/{factories.checkout(acme).pk}/pay"
        answer = api.client.post(
            path, {"card": DECLINED}, content_type="application/json", headers=api.headers({})
        )
        assert answer.status_code == 402
    assert not CardTry.objects.exists()


def test_tries_are_deleted_once_no_limit_counts_them(new: Callable[..., Payer]) -> None:
    give(new(), DECLINED)
    tasks.delete_old_card_tries()
    assert CardTry.objects.count() == 1
    CardTry.objects.update(id=clock.first_id(timezone.now() - declines.RETENTION - timedelta(seconds=1)))
    tasks.delete_old_card_tries()
    assert not CardTry.objects.exists()


@pytest.mark.rule("pay.declines")
def test_a_mates_cards_count_like_all_others(at: Callable[[str], Checkout]) -> None:
    finn = Mate(at("shared").payment_requests.get(status="open"))
    finn.pay(DECLINED)
    kept = CardTry.objects.get()
    assert (kept.subject, kept.is_counted) == (finn.share.pk, True)
    assert "7700900456" not in f"{kept.phone_digest} {kept.address_digest} {kept.card_token}"
    assert finn.get("/card").status_code == 302
    for _ in range(2):
        finns = Customer.objects.get(phone="+447700900456")
        admit(finns, "tok", "192.0.2.9")
    assert finn.get("/card").status_code == 429


@pytest.mark.django_db(transaction=True)
def test_of_ten_simultaneous_cards_at_most_the_limit_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    decide, together = declines._run_limit_check, threading.Barrier(10)

    def check_slowly(template: str, parameters: Any) -> None:
        decide(template, parameters)
        # Without a lock, the other threads would read the count during this pause.
        time.sleep(0.05)

    def tried(phone: str, address: str) -> bool:
        connection.ensure_connection()
        together.wait()
        try:
            admit(Customer(phone=phone), "tok", address)
        except declines.TooManyDeclines:
            return False
        finally:
            connection.close()
        return True

    monkeypatch.setattr(declines, "_run_limit_check", check_slowly)
    phones = [f"+44770090020{number}" for number in range(10)]
    addresses = [f"198.51.100.{number}" for number in range(10)]
    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(tried, [LEA] * 10, addresses)) == 3
        assert sum(pool.map(tried, phones, ["192.0.2.1"] * 10)) == 5


@pytest.mark.rule("pay.declines")
def test_tries_of_accepted_cards_stop_counting(acme: Merchant) -> None:
    lea = Customer(phone=LEA)
    for status, reason, is_counted in (
        ("authorized", "", False),
        ("voided", "", False),
        ("declined", "challenge_failed", False),
        ("declined", "another_card", False),
        ("declined", "do_not_honor", True),
        ("authorizing", "", True),
        # The operation was abandoned, but the card's bank can still decline the card.
        ("authorizing", "never_arrived", True),
    ):
        tried = admit(lea, "tok", "192.0.2.1")
        factories.bare_checkout(acme, tried.subject)
        Payment.objects.create(
            merchant=acme,
            kind=Payment.Kind.ORDER,
            subject=tried.subject,
            checkout_uuid=tried.subject,
            amount=9000,
            currency="GBP",
            card_token="tok",
            status=status,
            decline_reason=reason,
        )
        declines.check_limits(PaymentTarget(Checkout(pk=uuid4())), lea, "192.0.2.1")
        # When another person uses a card from the same address, the service updates which earlier tries count.
        admit(Customer(phone="+447700900999"), "tok", "192.0.2.1").delete()
        tried.refresh_from_db()
        assert tried.is_counted == is_counted, (status, reason)


def admit(person: Customer, token: str, address: str) -> CardTry:
    """Record, as the service does, that a person uses a card for a new order. Return the row."""
    target = PaymentTarget(Checkout(pk=uuid4()))
    with transaction.atomic():
        declines.count_card_try(target, person, token, address)
    return CardTry.objects.get(subject=target.subject)


def test_a_card_of_a_replaced_lead_is_not_counted(new: Callable[..., Payer]) -> None:
    lea, other = new(), Customer.objects.create(phone="+447700900456")
    with pytest.raises(authorizations.NotTheLead):
        card._pay_target(PaymentTarget(lea.checkout), CardUse("tok"), other, "192.0.2.1")
    assert not CardTry.objects.exists()
