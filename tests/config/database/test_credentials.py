"""Secrets that give access are never in the database in clear text (rule secret.at_rest).

`CREDENTIALS` lists the columns that hold such a secret, and how each column stores it. A new column whose name sounds
like a credential makes the test fail until it is listed. `test_no_secret_is_stored_in_clear_text` collects real secrets
from cookies, pages, emails and API responses, and searches for them in the text of all tables.
"""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.core import mail
from django.db import connection, models
from django.test import Client

from checkout.models import Checkout, PaymentRequest
from config.lib.crypto import EncryptedTextField, FindableTextField
from hosted_page.models import OptIn
from hosted_page.opt_in import link
from payments.models import Merchant
from portal import keys, team
from portal.models import Role
from tests.conftest import Api
from tests.hosted_page.browsers import Payer, words
from tests.portal import people, stage

pytestmark = [pytest.mark.django_db, pytest.mark.rule("secret.at_rest")]
DIGEST, KEYED, HASH, ENCRYPTED = "digest", "keyed digest", "password hash", "encrypted"
# Columns that hold a secret, and how each stores it.
CREDENTIALS = {
    "account.EmailConfirmation.key": "unused: no e-mail is confirmed by a link",
    "checkout.GroupLink.token": ENCRYPTED,
    "checkout.GroupLink.token_digest": DIGEST,
    "checkout.PaymentRequest.claim_digest": DIGEST,
    "checkout.PaymentRequest.token": ENCRYPTED,
    "checkout.PaymentRequest.token_digest": DIGEST,
    "checkout.ReplacedLink.token_digest": DIGEST,
    "hosted_page.KnownBrowser.token_digest": DIGEST,
    "hosted_page.SignInCode.browser_digest": DIGEST,
    "hosted_page.SignInCode.code_digest": KEYED,
    "mfa.Authenticator.data": ENCRYPTED,
    "oauth2_provider.AccessToken.token": DIGEST,
    "oauth2_provider.AccessToken.token_checksum": DIGEST,
    "portal.ApiClient.client_secret": HASH,
    "portal.ApiClient.previous_secret": HASH,
    "portal.Canary.digest": KEYED,
    "portal.Canary.sealed": ENCRYPTED,
    "portal.Invitation.token_digest": DIGEST,
    "portal.OutboundEmail.facts": "the link of an invitation in it is encrypted",
    "portal.OutboundEmail.text": ENCRYPTED,
    "portal.PreviousPassword.encoded": HASH,
    "portal.User.password": HASH,
    "sessions.Session.session_data": ENCRYPTED,
    "sessions.Session.session_key": KEYED,
    "usersessions.UserSession.session_key": KEYED,
    "webhooks.SigningSecret.secret": ENCRYPTED,
}
# Columns whose names sound like a credential, but whose values give no access.
_COUNTED = "what limits count by"
_OTHER_GRANT = "of a grant that the token endpoint refuses: its table stays empty"
NAMED_ALIKE = {
    "auth.Permission.codename": "a name of Django's",
    "bank.CardToken.digest": "of the sandbox bank, which stores digests too",
    "checkout.ApiCall.error_code": "a code of our error table",
    "checkout.IdempotencyKey.key": "chosen by the caller, and used only with the caller's token",
    "checkout.IdempotencyKey.request_digest": "of a request's bytes",
    "hosted_page.CardTry.address_digest": _COUNTED,
    "hosted_page.CardTry.card_token": "used only with our key at the provider",
    "hosted_page.CardTry.phone_digest": _COUNTED,
    "hosted_page.CardTry.site_digest": _COUNTED,
    "hosted_page.OptIn.email_digest": "finds the ticks of an address",
    "hosted_page.ShareTake.address_digest": _COUNTED,
    "hosted_page.ShareTake.site_digest": _COUNTED,
    "hosted_page.SmsMessage.address_digest": _COUNTED,
    "hosted_page.SmsMessage.phone_digest": _COUNTED,
    "hosted_page.SmsMessage.range_digest": _COUNTED,
    "hosted_page.SmsMessage.site_digest": _COUNTED,
    "hosted_page.SmsStop.key_mark": "names the lookup key of the row",
    "oauth2_provider.DeviceGrant.device_code": _OTHER_GRANT,
    "oauth2_provider.DeviceGrant.user_code": _OTHER_GRANT,
    "oauth2_provider.Grant.code": _OTHER_GRANT,
    "oauth2_provider.Grant.code_challenge": _OTHER_GRANT,
    "oauth2_provider.RefreshToken.token": _OTHER_GRANT,
    "oauth2_provider.RefreshToken.token_checksum": _OTHER_GRANT,
    "payments.Payment.card_token": "used only with our key at the provider",
    "portal.LoginAttempt.account_digest": _COUNTED,
    "portal.LoginAttempt.address_digest": _COUNTED,
    "portal.LoginAttempt.site_digest": _COUNTED,
    "portal.OutboundEmail.key": "makes a mail unique",
}
_NAMES = re.compile(
    r"token|secret|password|passcode|digest|checksum|(^|_)key(s|_|$)|code|seed|session|cookie|sealed|credential|link"
)


def columns() -> Iterator[tuple[str, "models.Field[object, object]"]]:
    """Yield `app.Model.field` and the field for each text or binary column without fixed choices."""
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            is_text = isinstance(
                field, models.CharField | models.TextField | models.BinaryField | models.JSONField
            )
            if is_text and not field.choices:
                yield f"{model._meta.app_label}.{model.__name__}.{field.name}", field


def test_each_column_with_a_name_like_a_credential_is_listed() -> None:
    alike = {name for name, _ in columns() if _NAMES.search(name.rsplit(".", 1)[1])}
    listed = CREDENTIALS.keys() | NAMED_ALIKE.keys()
    assert alike - listed == set(), (
        "Say in CREDENTIALS how it is stored, or in NAMED_ALIKE why it gives no access."
    )
    assert listed - {name for name, _ in columns()} == set(), "These columns no longer exist."


@pytest.mark.parametrize("name", [name for name, how in CREDENTIALS.items() if how == ENCRYPTED])
def test_each_column_listed_as_encrypted_is_encrypted(name: str) -> None:
    field = dict(columns())[name]
    # Our MFA adapter and our session serializer encrypt these columns.
    by_library = {"mfa.Authenticator.data", "sessions.Session.session_data"}
    assert name in by_library or isinstance(field, EncryptedTextField | FindableTextField)


def everything_stored() -> str:
    """Return all rows of all tables, as text."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
        )
        tables = [table for (table,) in cursor.fetchall()]
        rows = []
        for table in tables:
            cursor.execute(f'SELECT to_jsonb(t)::text FROM "{table}" t')
            rows += [row for (row,) in cursor.fetchall()]
    return "\n".join(rows)


def of_people(merchant: Merchant) -> Iterator[str]:
    """Yield the secrets of a merchant's users: a session, a password, codes, links and a second factor."""
    lea, browser = people.join(merchant), Client()
    people.log_in(browser)
    yield browser.cookies["sessionid"].value
    yield people.PASSWORD
    yield people.set_up_app(lea)
    yield from people.recovery_codes(lea)
    membership = lea.memberships.get()
    team.invite(membership, "new@acme.example", Role.VIEWER)
    Client().post("/accounts/password/reset/", {"email": people.EMAIL})
    Client().post("/accounts/login/code/", {"email": people.EMAIL})
    yield from mailed()


def mailed() -> Iterator[str]:
    """Send the queued emails, and yield the tokens and codes in them."""
    people.mails()
    found = "\n".join(str(message.body) for message in mail.outbox)
    yield re.findall(r"/join/(\S+)", found)[0]
    yield re.findall(r"/password/reset/key/(\S+?)/", found)[0]
    yield re.findall(r"\b\d{8}\b", found)[0]


def of_backends(merchant: Merchant) -> Iterator[str]:
    """Yield the secrets of a merchant's backend: client secrets, an access token and a signing secret."""
    api = Api(merchant)
    yield api.key.client_secret
    yield api.token
    browser = stage.browser(stage.person(merchant, Role.ADMIN))
    yield keys.rotate(merchant.memberships.get(role=Role.ADMIN), api.key.client.pk).client_secret
    page = browser.post("/portal/keys/new", {"name": "Till", "scopes": "checkouts:read"})
    assert page.status_code == 302, "its secret waits in the session to be shown"
    answer = api.post("webhooks/subscription", {"url": stage.URL, "event_types": ["*"]})
    yield answer.json()["data"]["signing_secret"]


def of_payers(unpaid: Checkout) -> Iterator[str]:
    """Yield the secrets of payers: codes, cookies and links."""
    payer = Payer(unpaid)
    payer.post("/phone", phone="07700 900123", remember="yes")
    yield payer.code()
    payer.post("/code", code=payer.code())
    split = {"split": "own", "your_name": "Lea", "name": ["Finn"], "amount": ["24"], "phone": [""]}
    payer.client.post(f"/pay/split?id={unpaid.pk}", split)
    card = {"number": "4242424242424242", "expiry": "08 / 49", "code": "123"}
    payer.client.get(payer.client.post(payer.get("/card")["Location"], card)["Location"])
    for name, cookie in payer.client.cookies.items():
        # The cookie card_given belongs to the sandbox bank, which has only test cards.
        if cookie.value and name != "card_given":
            yield cookie.value
    for share in PaymentRequest.objects.all():
        yield share.token
    yield urlsplit(link.url(unpaid, OptIn.Placement.EMAIL_LINK)).path.rsplit("/", 1)[-1]


def test_no_secret_is_stored_in_clear_text(acme: Merchant, unpaid: Checkout) -> None:
    secrets = [*of_people(acme), *of_backends(acme), *of_payers(unpaid)]
    assert len(set(secrets)) > 20 and all(len(secret) >= 6 for secret in secrets)
    assert Authenticator.objects.count() == 2 and words(Client().get("/accounts/login/"))
    stored = everything_stored()
    found = [secret for secret in secrets if is_in(secret, stored)]
    assert found == []


def is_in(secret: str, stored: str) -> bool:
    """Return whether a secret is stored, as text or as bytes.

    A short code that is part of a longer number does not count.
    """
    if len(secret) <= 8 and secret.isdigit():
        return re.search(rf"(?<![0-9a-f]){secret}(?![0-9a-f])", stored) is not None
    return secret in stored or secret.encode().hex() in stored


def test_the_check_finds_a_secret_that_is_stored(acme: Merchant) -> None:
    acme.name = "sk_a-secret-in-a-name"
    acme.save()
    assert is_in("sk_a-secret-in-a-name", everything_stored()) and not is_in("sk_other", everything_stored())
