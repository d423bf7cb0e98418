"""The SMS budgets of a merchant, of all merchants and of a number range, and the limit per IP address.

After an order or a share is paid, its texts no longer count.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.db import connection, transaction
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout import captures
from checkout.models import Checkout
from config.lib.quota import Limit
from hosted_page import tasks
from hosted_page.models import SmsDay, SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import limits, outbox
from hosted_page.sms.limits import TooManySmsMessages
from hosted_page.sms.outbox import MessageRequest
from hosted_page.steps import codes
from payments.discrepancies import kinds
from payments.models import Discrepancy, Merchant
from payments.tasks import mail_discrepancies
from tests import factories
from tests.factories import CAUSE
from tests.hosted_page.browsers import Payer, words

pytestmark = pytest.mark.django_db
Set = Callable[[Settings, pytest.MonkeyPatch], None]


def ask(merchant: Merchant, phone: str, address: str = "192.0.2.1") -> Checkout:
    checkout = factories.checkout(merchant)
    codes.send_code(PaymentTarget(checkout), phone, "a browser", address)
    return checkout


def paid(checkout: Checkout, pay: Callable[[Checkout], Checkout]) -> None:
    captures.capture(checkout.merchant, pay(checkout).pk, cause=CAUSE)


def _of_merchant(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SMS_MERCHANT_BUDGET = 3


def _of_all(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SMS_TOTAL_BUDGET = 3


def _of_range(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SMS_RANGE_BUDGET = 3


def _of_address(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PER_ADDRESS", Limit(3, timedelta(hours=1)))


@pytest.mark.parametrize("limit", [_of_merchant, _of_all, _of_range, _of_address])
class TestALimit:
    @pytest.fixture(autouse=True)
    def _limited(self, limit: Set, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        limit(settings, monkeypatch)

    @pytest.mark.rule("sms.budgets")
    def test_refuses_when_it_is_used_up_and_says_when_to_try_again(self, acme: Merchant) -> None:
        for number in range(3):
            ask(acme, f"+44770090012{number}")
        with pytest.raises(TooManySmsMessages, match=r"ry again in (an hour|\d+ (minute|hour))"):
            ask(acme, "+447700900129")
        assert SmsMessage.objects.count() == 3

    @pytest.mark.rule("sms.paid")
    def test_does_not_count_texts_that_led_to_a_payment(
        self, acme: Merchant, pay: Callable[[Checkout], Checkout]
    ) -> None:
        asked = [ask(acme, f"+44770090012{number}") for number in range(3)]
        paid(asked[1], pay)
        tasks.watch_sms_budgets()
        ask(acme, "+447700900128")
        with pytest.raises(TooManySmsMessages):
            ask(acme, "+447700900129")
        tasks.watch_sms_budgets()
        with pytest.raises(TooManySmsMessages):
            ask(acme, "+447700900129")

    def test_still_counts_a_text_that_led_only_to_a_hold(
        self, acme: Merchant, pay: Callable[[Checkout], Checkout]
    ) -> None:
        for number in range(3):
            pay(ask(acme, f"+44770090012{number}"))
        tasks.watch_sms_budgets()
        with pytest.raises(TooManySmsMessages):
            ask(acme, "+447700900129")


@pytest.mark.parametrize("limit", [_of_range, _of_address])
def test_a_text_that_led_to_a_payment_does_not_count_for_range_and_address(
    limit: Set,
    acme: Merchant,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    pay: Callable[[Checkout], Checkout],
) -> None:
    limit(settings, monkeypatch)
    for number in range(3):
        paid(ask(acme, f"+44770090012{number}"), pay)
    ask(acme, "+447700900129")


@pytest.mark.rule("sms.paid")
def test_the_text_of_a_paid_share_and_a_returning_payers_code_do_not_use_the_budget(
    at: Callable[[str], Checkout],
) -> None:
    order = at("shared")
    paid_by_finn, asked_of_amy = order.payment_requests.order_by("position")
    ends_at = timezone.now() + timedelta(minutes=10)
    for share, phone in ((paid_by_finn, "+447700900456"), (asked_of_amy, "+447700900789")):
        outbox.queue_message(
            MessageRequest(
                SmsMessage.Kind.CODE, phone, PaymentTarget(order, share), "words", ends_at, "192.0.2.1"
            )
        )
    back = MessageRequest(
        SmsMessage.Kind.RETURN, "+447700900123", PaymentTarget(order), "words", ends_at, "192.0.2.1"
    )
    outbox.queue_code_for_payer(back, key=uuid4(), is_payer=True)
    tasks.watch_sms_budgets()
    assert [text.is_counted for text in SmsMessage.objects.order_by("created_at")] == [False, True, True]
    assert {day.count for day in SmsDay.objects.all()} == {1}, "no code to come back was spent there"


def test_the_page_says_when_to_retry_and_signed_in_payers_continue(
    acme: Merchant, settings: Settings
) -> None:
    settings.SMS_MERCHANT_BUDGET = 1
    lea = Payer(factories.checkout(acme))
    lea.sign_in()
    refused = Payer(factories.checkout(acme)).post("/phone", phone="07700 900456")
    assert refused.status_code == 422 and "We cannot send more texts for this shop today" in words(refused)
    assert lea.post("/split", split="all").status_code == 303
    assert "/bank/card/" in lea.get("/card")["Location"]


def test_the_budget_of_one_merchant_does_not_affect_another(
    acme: Merchant, rival: Merchant, settings: Settings
) -> None:
    settings.SMS_MERCHANT_BUDGET = 1
    ask(acme, "+447700900120")
    ask(rival, "+447700900121")
    assert {day.count for day in SmsDay.objects.exclude(merchant=None)} == {1}
    assert SmsDay.objects.get(merchant=None).count == 2


def test_a_refused_text_is_not_counted(acme: Merchant, settings: Settings) -> None:
    settings.SMS_TOTAL_BUDGET = 0
    with pytest.raises(TooManySmsMessages):
        ask(acme, "+447700900120")
    assert not SmsDay.objects.exists() and not SmsMessage.objects.exists()


def test_a_day_ends(acme: Merchant, settings: Settings) -> None:
    settings.SMS_MERCHANT_BUDGET = 1
    ask(acme, "+447700900120")
    SmsDay.objects.update(day=timezone.now().date() - timedelta(days=1))
    tasks.watch_sms_budgets()
    assert not Discrepancy.objects.exists(), "nothing can be done about a day that is over"
    ask(acme, "+447700900121")


def test_a_days_counts_are_deleted_after_thirty_days() -> None:
    today = timezone.now().date()
    SmsDay.objects.bulk_create(SmsDay(day=today - timedelta(days=ago), count=1) for ago in (0, 30, 31))
    tasks.delete_old_sms_messages()
    assert min(day.day for day in SmsDay.objects.all()) == today - timedelta(days=30)


class TestTheOperators:
    @pytest.mark.rule("sms.budgets")
    def test_get_one_mail_a_day_for_each_at_80_percent(self, acme: Merchant, settings: Settings) -> None:
        settings.OPERATORS, settings.SMS_MERCHANT_BUDGET, settings.SMS_TOTAL_BUDGET = ["ops@x.example"], 5, 6
        for number in range(3):
            ask(acme, f"+44770090012{number}")
        tasks.watch_sms_budgets()
        assert not Discrepancy.objects.exists()
        ask(acme, "+447700900124")
        tasks.watch_sms_budgets()
        mail_discrepancies()
        (told,) = mail.outbox
        assert kinds.SMS_BUDGET_OF_MERCHANT.sentence in told.body and "Acme Tickets" in told.body
        Discrepancy.objects.update(closed_at=timezone.now(), mailed_at=timezone.now() - timedelta(minutes=2))
        ask(acme, "+447700900125")
        tasks.watch_sms_budgets()
        mail_discrepancies()
        assert len(mail.outbox) == 2 and kinds.SMS_BUDGET_OF_ALL.sentence in mail.outbox[1].body
        assert kinds.SMS_BUDGET_OF_MERCHANT.sentence not in mail.outbox[1].body
        tasks.watch_sms_budgets()
        assert Discrepancy.objects.count() == 2

    def test_get_no_mail_for_a_sale_that_is_paid(
        self, acme: Merchant, settings: Settings, pay: Callable[[Checkout], Checkout]
    ) -> None:
        settings.SMS_MERCHANT_BUDGET = 4
        for number in range(4):
            paid(ask(acme, f"+44770090012{number}"), pay)
        tasks.watch_sms_budgets()
        assert not Discrepancy.objects.exists() and SmsDay.objects.get(merchant=None).count == 0


@pytest.mark.django_db(transaction=True)
def test_ten_simultaneous_texts_stay_within_the_limit(
    acme: Merchant, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, ends_at = PaymentTarget(factories.checkout(acme)), timezone.now() + timedelta(minutes=10)
    save, together = SmsMessage.save, threading.Barrier(10)

    def lock_slowly(row: SmsMessage, **how: Any) -> None:
        # Without a lock, the other threads would count the texts during this pause, and miss this text.
        time.sleep(0.02)
        save(row, **how)

    def put(kind: SmsMessage.Kind, phone: str, address: str) -> bool:
        asked = MessageRequest(kind, phone, target, "words", ends_at, address)
        connection.ensure_connection()
        together.wait()
        try:
            with transaction.atomic():
                if kind == SmsMessage.Kind.CODE:
                    outbox.queue_message(asked)
                else:
                    outbox.queue_code_for_payer(asked, key=uuid4(), is_payer=True)
        except TooManySmsMessages:
            return False
        finally:
            connection.close()
        return True

    monkeypatch.setattr(SmsMessage, "save", lock_slowly)
    monkeypatch.setattr(limits, "PER_ADDRESS", Limit(3, timedelta(hours=1)))
    settings.SMS_RANGE_BUDGET, settings.SMS_MERCHANT_BUDGET = 4, 12
    ten = range(10)
    with ThreadPoolExecutor(10) as pool:
        for phones, addresses, maximum in (
            (["+447700900123"] * 10, [f"192.0.2.{number}" for number in ten], 1),
            ([f"+44771{number}900123" for number in ten], ["198.51.100.1"] * 10, 3),
            ([f"+447720900{number:03}" for number in ten], [f"192.0.2.{number}" for number in ten], 4),
            ([f"+44773{number}900123" for number in ten], [f"203.0.113.{number}" for number in ten], 12 - 8),
        ):
            assert sum(pool.map(put, [SmsMessage.Kind.CODE] * 10, phones, addresses)) == maximum, phones
        assert SmsDay.objects.get(merchant=acme).count == SmsMessage.objects.count() == 12
        back = [SmsMessage.Kind.RETURN] * 10, ["+447740900123"] * 10, [f"198.18.0.{number}" for number in ten]
        assert sum(pool.map(put, *back)) == 10, "all are answered alike"
    assert SmsMessage.objects.filter(kind=SmsMessage.Kind.RETURN).exclude(phone_digest="").count() == 1
