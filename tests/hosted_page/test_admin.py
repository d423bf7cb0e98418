"""The operators' pages about payers show no phone numbers, addresses or tokens."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from hosted_page.admin import SmsMessageAdmin
from hosted_page.models import KnownBrowser, PayerSignIn, ShareTake, SignInCode, SmsMessage, SmsStop
from tests.hosted_page.browsers import PHONE, Payer
from tests.portal import people

pytestmark = [pytest.mark.django_db, pytest.mark.rule("secret.logs")]
NUMBER = "+447700900123"
SENT_AT = datetime(2026, 11, 30, 8, 24, 10, tzinfo=UTC)


@pytest.mark.parametrize("kind", [SignInCode, PayerSignIn, SmsMessage, KnownBrowser, SmsStop, ShareTake])
def test_the_admin_shows_no_phone_number_and_no_token(client: Client, unpaid: Checkout, kind: type) -> None:
    Payer(unpaid).sign_in()
    KnownBrowser.objects.create(token_digest="d" * 64, phone=NUMBER, proven_at=timezone.now())
    SmsStop.objects.create(number="n" * 30, stopped_at=timezone.now())
    ShareTake.objects.create(address_digest="e" * 64, created_at=timezone.now() - timedelta(hours=1))
    people.operate(client)
    row = kind.objects.get()  # type: ignore[attr-defined]
    address = f"/admin/hosted_page/{kind.__name__.lower()}/"
    for path in (address, f"{address}{row.pk}/change/"):
        answer = client.get(path, follow=True)
        assert answer.status_code == 200
        page = answer.content.decode()
        assert NUMBER not in page and PHONE not in page and "d" * 64 not in page and "e" * 64 not in page


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, "Waiting"),
        ({"sent_at": SENT_AT, "ended_at": SENT_AT}, "Handed to the carrier at 08:24:10"),
        ({"sent_at": timezone.now(), "receipt": "delivered"}, "Delivered"),
        ({"sent_at": timezone.now(), "receipt": "undelivered", "refusal": "30005"}, "Undelivered"),
        ({"ended_at": timezone.now(), "refusal": "21610"}, "Refused"),
        ({"ended_at": timezone.now()}, "Not sent"),
        ({"ended_at": timezone.now(), "claimed_at": timezone.now()}, "In doubt"),
    ],
)
def test_the_list_of_texts_shows_the_state_of_each(
    facts: dict[str, Any], state: str, settings: Settings
) -> None:
    settings.SMS_SENDER = settings.TWILIO_SMS_SENDER
    assert SmsMessageAdmin(SmsMessage, admin.site).state(SmsMessage(**facts)) == state


def test_a_text_that_was_not_sent_shows_no_time_of_its_sending(
    operator: Client, unpaid: Checkout, settings: Settings
) -> None:
    Payer(unpaid).sign_in()
    row = SmsMessage.objects.latest("pk")
    SmsMessage.objects.update(sent_at=SENT_AT, claimed_at=SENT_AT, ended_at=SENT_AT, due_at=None)
    address = f"/admin/hosted_page/smsmessage/{row.pk}/change/"
    assert ">Sent</label>" not in operator.get(address).content.decode()
    settings.SMS_SENDER = settings.TWILIO_SMS_SENDER
    assert ">Sent</label>" in operator.get(address).content.decode()


def test_the_list_of_texts_says_that_the_sandbox_sends_none() -> None:
    text = SmsMessage(sent_at=SENT_AT, ended_at=SENT_AT)
    assert SmsMessageAdmin(SmsMessage, admin.site).state(text) == "Not texted"


def test_a_text_says_that_its_phone_number_was_deleted() -> None:
    assert SmsMessageAdmin(SmsMessage, admin.site).number(SmsMessage(phone="")) == "Phone number deleted"
