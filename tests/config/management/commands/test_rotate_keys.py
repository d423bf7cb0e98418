"""`manage.py rotate_keys`: a field key that has leaked can be removed without losing data."""

import io
from collections.abc import Iterator

import pytest
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, InvalidToken
from django.core.mail import EmailMessage
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django.fixtures import Settings

from checkout.models import Checkout, Customer, PaymentRequest
from config.lib import clock, crypto
from config.management.commands import rotate_keys
from hosted_page.models import OptIn, SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import outbox as sms_outbox
from payments.models import Merchant
from portal import team
from portal.accounts import second_factor
from portal.mail import outbox as email_outbox
from portal.models import Canary, Membership, OutboundEmail, Role, User
from tests import factories, mates
from tests.conftest import Api
from tests.portal import people
from webhooks import outbox
from webhooks.models import Event, EventType, SigningSecret

pytestmark = pytest.mark.django_db
FIRST, SECOND = Fernet.generate_key().decode(), Fernet.generate_key().decode()


class Keys:
    """The FIELD_KEYS of this process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def are(self, *keys: str) -> None:
        self._settings.FIELD_KEYS = list(keys)
        crypto._field_cipher.cache_clear()


@pytest.fixture
def keys(settings: Settings) -> Iterator[Keys]:
    before = settings.FIELD_KEYS
    keys = Keys(settings)
    # The canary row was encrypted with the key of the test run, which the tests here replace.
    Canary.objects.all().delete()
    keys.are(FIRST)
    yield keys
    keys.are(*before)


class EncryptedRows:
    """Rows with one value of each kind that is stored encrypted. `read` returns all these values."""

    def __init__(self, api: Api, captured: Checkout) -> None:
        self.merchant: Merchant = api.merchant
        Merchant.objects.filter(pk=self.merchant.pk).update(opt_in_enabled=True)
        people.join(self.merchant)
        self.owner = User.objects.get(email=people.EMAIL)
        people.set_up_app(self.owner)
        factories.subscribe(self.merchant, url="http://127.0.0.1:9/hook", event_types=["*"])
        payload = {"customer": {"email": "lea@example.com"}}
        outbox.emit(self.merchant, EventType.OPTED_IN, payload, at=clock.now())
        mates.split(factories.checkout(self.merchant), 1000, 2000)
        path = f"/api/sandbox/v1/checkouts/{captured.pk}/opt-in"
        answer = api.client.post(
            path, {"email": "lea@example.com"}, content_type="application/json", headers=api.headers({})
        )
        assert answer.status_code == 200 and OptIn.objects.count() == 1, answer.content
        about = sms_outbox.MessageRequest(
            SmsMessage.Kind.CODE,
            "+447700900123",
            PaymentTarget(captured),
            "123456 is your code",
            clock.now(),
            "",
        )
        sms_outbox.queue_message(about)
        email_outbox.queue_mail(EmailMessage("Your code", "12345678", to=[people.EMAIL]), "code", seconds=600)
        team.invite(Membership.objects.get(user=self.owner), "dora@acme.example", Role.VIEWER)

    def read(self) -> list[object]:
        return [
            *SigningSecret.objects.values_list("secret", flat=True),
            *PaymentRequest.objects.order_by("position").values_list("token", flat=True),
            *SmsMessage.objects.values_list("phone", "body"),
            *Customer.objects.order_by("pk").values_list("phone", flat=True),
            *(Customer.objects.filter(phone=phone).count() for phone in ("+447700900123", "+447700900456")),
            *OptIn.objects.values_list("email", flat=True),
            *(event.plain_body for event in Event.objects.filter(type=EventType.OPTED_IN).order_by("id")),
            *OutboundEmail.objects.filter(kind="code").values_list("text", flat=True),
            *people.recovery_codes(self.owner),
            *(
                crypto.decrypt(notice.facts["link"])
                for notice in OutboundEmail.objects.filter(kind="invitation")
            ),
        ]


@pytest.fixture
def encrypted_rows(keys: Keys, api: Api, captured: Checkout) -> EncryptedRows:
    return EncryptedRows(api, captured)


def rotate() -> str:
    said = io.StringIO()
    call_command("rotate_keys", stdout=said)
    return said.getvalue()


@pytest.mark.rule("secret.keys")
def test_leaves_no_row_that_needs_the_old_key(
    encrypted_rows: EncryptedRows, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With one row in each batch, the command needs several batches.
    monkeypatch.setattr(rotate_keys, "ROWS", 1)
    before = encrypted_rows.read()
    assert len(before) > 8
    keys.are(SECOND, FIRST)
    assert encrypted_rows.read() == before
    assert "checkout_paymentrequest.token: 2 rewritten" in rotate()
    keys.are(SECOND)
    assert encrypted_rows.read() == before
    app = Authenticator.objects.get(user=encrypted_rows.owner, type="totp")
    assert (
        second_factor.use_code(encrypted_rows.owner, people.code(crypto.decrypt(app.data["secret"]))) == app
    )
    keys.are(FIRST)
    with pytest.raises(InvalidToken):
        encrypted_rows.read()


def test_a_second_run_rewrites_nothing(encrypted_rows: EncryptedRows, keys: Keys) -> None:
    keys.are(SECOND, FIRST)
    rotate()
    counts = [line.split(": ")[1] for line in rotate().splitlines()[:-1]]
    assert len(counts) == 19 and set(counts) == {"0 rewritten"}


def test_reports_its_progress(
    encrypted_rows: EncryptedRows, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotate_keys, "ROWS", 1)
    monkeypatch.setattr(rotate_keys, "PROGRESS_EVERY", 2)
    said = rotate()
    assert "checkout_paymentrequest.token: 2 read\ncheckout_paymentrequest.token: 0 rewritten" in said


def test_names_the_row_that_no_key_decrypts(encrypted_rows: EncryptedRows, keys: Keys) -> None:
    keys.are(SECOND)
    with pytest.raises(CommandError, match=r"No key in FIELD_KEYS can decrypt .* of "):
        rotate()


def test_keeps_a_row_that_changes_during_the_rotation(
    encrypted_rows: EncryptedRows, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.are(SECOND, FIRST)
    seal = crypto.rotate

    def change_first(sealed: str) -> str:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE webhooks_signingsecret SET secret = %s", [crypto.encrypt("whsec_new")])
        return seal(sealed)

    monkeypatch.setattr(crypto, "rotate", change_first)
    with pytest.raises(CommandError, match=r"1 rows were changed at the same time\. Run it again\."):
        rotate()
    assert SigningSecret.objects.get().secret == "whsec_new"
