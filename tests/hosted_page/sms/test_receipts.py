"""The effects of Twilio's status callbacks, which are signed as Twilio's reference describes.

A callback with a wrong signature does not change any message.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from hosted_page.models import SmsMessage
from payments.models import Merchant
from tests.hosted_page.sms.senders.twilio_double import ACCOUNT, KEY

pytestmark = [pytest.mark.django_db, pytest.mark.rule("sms.receipt")]
FORM = "application/x-www-form-urlencoded"
BASE = "https://checkout.example"


@pytest.fixture(autouse=True)
def _with_twilio(settings: Settings) -> None:
    settings.SMS_SENDER, settings.TWILIO_AUTH_TOKEN = settings.TWILIO_SMS_SENDER, KEY
    settings.BASE_URL = BASE


@pytest.fixture
def message(acme: Merchant) -> SmsMessage:
    now = timezone.now()
    return SmsMessage.objects.create(
        kind=SmsMessage.Kind.CODE,
        merchant=acme,
        checkout_uuid=acme.pk,
        subject=acme.pk,
        address_digest="a",
        created_at=now,
        ends_at=now + timedelta(minutes=10),
        claimed_at=now,
        sent_at=now,
        ended_at=now,
    )


def signature(address: str, fields: Mapping[str, str], key: str = KEY) -> str:
    """Return the signature as Twilio's reference defines it.

    The signed text is the address, followed by the name and the value of each field, sorted by name.
    """
    signed = address + "".join(name + fields[name] for name in sorted(fields))
    return base64.b64encode(hmac.new(key.encode(), signed.encode(), hashlib.sha1).digest()).decode()


def form_with(status: str, **more: str) -> dict[str, str]:
    sid = "SM" + "3d" * 16
    return {
        "AccountSid": ACCOUNT,
        "ApiVersion": "2010-04-01",
        "From": "+15005550006",
        "To": "+447700900123",
        "MessageSid": sid,
        "SmsSid": sid,
        "MessageStatus": status,
        "SmsStatus": status,
        **more,
    }


def call(message: SmsMessage, fields: dict[str, str], signed: str | None = None) -> Any:
    """Send a callback to the service as Twilio does, without a cookie and without a sign-in."""
    path = f"/sms/twilio/{message.pk}"
    headers = {"X-Twilio-Signature": signature(BASE + path, fields) if signed is None else signed}
    return Client(enforce_csrf_checks=True).post(path, urlencode(fields), FORM, headers=headers)


def outcome(message: SmsMessage) -> tuple[str, str]:
    message.refresh_from_db()
    return message.receipt, message.refusal


class TestACallback:
    @pytest.mark.parametrize(
        ("status", "receipt"),
        [
            *((status, "") for status in ("accepted", "queued", "sending", "sent", "anything new")),
            *((status, "delivered") for status in ("delivered", "read")),
            *((status, "undelivered") for status in ("undelivered", "failed", "canceled")),
        ],
    )
    def test_records_the_outcome_of_the_message(self, message: SmsMessage, status: str, receipt: str) -> None:
        assert call(message, form_with(status)).status_code == 204
        assert outcome(message) == (receipt, "")

    @pytest.mark.parametrize(
        ("code", "refusal"),
        [("30007", "filtered_by_carrier"), ("30003", "twilio_30003"), ("x" * 500, "other"), ("", "")],
    )
    def test_records_why_the_message_was_not_delivered(
        self, message: SmsMessage, code: str, refusal: str
    ) -> None:
        assert call(message, form_with("undelivered", ErrorCode=code)).status_code == 204
        assert outcome(message) == ("undelivered", refusal)

    def test_counts_once_and_the_first_result_stays(self, message: SmsMessage) -> None:
        for status in ("delivered", "delivered", "sent", "undelivered"):
            assert call(message, form_with(status)).status_code == 204
        assert outcome(message) == ("delivered", "")

    def test_can_have_unknown_fields(self, message: SmsMessage) -> None:
        assert (
            call(message, form_with("delivered", RawDlrDoneDate="2611230500", Nouveau="é +&=")).status_code
            == 204
        )
        assert outcome(message) == ("delivered", "")

    def test_about_a_deleted_message_is_accepted(self, message: SmsMessage) -> None:
        SmsMessage.objects.all().delete()
        assert call(message, form_with("delivered")).status_code == 204

    def test_logs_no_number(self, message: SmsMessage, caplog: pytest.LogCaptureFixture) -> None:
        call(message, form_with("undelivered", ErrorCode="30003"))
        assert "SMS not delivered" in caplog.text and "twilio_30003" in caplog.text
        assert "7700900123" not in caplog.text and KEY not in caplog.text


class TestAForgedCallback:
    @pytest.mark.parametrize(
        "signed", ["", "x", "é", signature("https://else.example", form_with("delivered"))]
    )
    def test_is_refused(self, message: SmsMessage, signed: str) -> None:
        assert call(message, form_with("delivered"), signed.encode().decode("latin-1")).status_code == 403
        assert outcome(message) == ("", "")

    def test_with_another_key_is_refused(self, message: SmsMessage) -> None:
        fields = form_with("delivered")
        for key in ("", "another"):
            signed = signature(f"{BASE}/sms/twilio/{message.pk}", fields, key)
            assert call(message, fields, signed).status_code == 403
        assert outcome(message) == ("", "")

    def test_with_other_fields_is_refused(self, message: SmsMessage) -> None:
        signed = signature(f"{BASE}/sms/twilio/{message.pk}", form_with("delivered"))
        assert call(message, form_with("undelivered"), signed).status_code == 403
        assert outcome(message) == ("", "")

    def test_about_another_message_is_refused(self, message: SmsMessage) -> None:
        signed = signature(f"{BASE}/sms/twilio/{message.subject}", form_with("delivered"))
        assert call(message, form_with("delivered"), signed).status_code == 403

    def test_is_refused_if_another_sender_is_configured(
        self, message: SmsMessage, settings: Settings
    ) -> None:
        settings.SMS_SENDER, settings.TWILIO_AUTH_TOKEN = settings.PAGE_SMS_SENDER, ""
        signed = signature(f"{BASE}/sms/twilio/{message.pk}", form_with("delivered"), key="")
        assert call(message, form_with("delivered"), signed).status_code == 403

    def test_that_is_not_a_post_or_is_too_long_is_refused(self, message: SmsMessage) -> None:
        assert Client().get(f"/sms/twilio/{message.pk}").status_code == 405
        assert call(message, form_with("delivered", More="x" * 40_000)).status_code == 413
        assert outcome(message) == ("", "")
