"""Each key of the service: what it protects, and how it is replaced."""

import pytest
from allauth.usersessions.models import UserSession
from cryptography.fernet import Fernet
from django.contrib.sessions.models import Session
from django.core import signing
from django.db import connection
from django.test import Client
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from config.lib import crypto
from hosted_page.opt_in import link as opt_in_link
from payments.models import Merchant
from portal.models import User
from tests.portal import people

pytestmark = pytest.mark.django_db
FRESH = "a-key-that-nobody-had-before-0123456789-0123456789-01"


def kept_sessions() -> str:
    """Return each stored session in two forms: as it is stored, and unpacked without its signature.

    A thief who has the database can unpack the sessions in the same way.
    """
    with connection.cursor() as cursor_:
        cursor_.execute("SELECT session_data FROM django_session")
        rows = [text for (text,) in cursor_.fetchall()]
    salt = "django.contrib.sessions.SessionStore"
    opened = [signing.loads(row, salt=salt, serializer=Plain) for row in rows]
    return " ".join([*rows, *opened])


class Plain(signing.JSONSerializer):
    """A serializer that returns a session's stored bytes as text, without decrypting them."""

    def loads(self, data: bytes) -> str:
        return data.decode("latin-1")


class TestSession:
    @pytest.fixture
    def lea(self, acme: Merchant) -> User:
        return people.join(acme)

    def test_contains_no_readable_login_code(self, client: Client, lea: User) -> None:
        client.post("/accounts/login/code/", {"email": lea.email})
        code = people.mailed(r"\b\d{8}\b")
        assert Session.objects.exists() and code not in kept_sessions()
        assert lea.email not in kept_sessions()

    def test_contains_no_readable_secret_of_an_app_during_setup(self, client: Client, lea: User) -> None:
        people.log_in(client)
        secret = str(client.get("/accounts/2fa/totp/activate/").context["form"].secret)
        assert secret in str(dict(client.session)) and secret not in kept_sessions()

    def test_contains_no_readable_form_that_waits_for_a_proof(self, client: Client, lea: User) -> None:
        operator = people.operate(client, User.objects.create_superuser("olga@example.com", people.PASSWORD))
        people.prove(client, operator, ago=600)
        client.post("/admin/portal/user/add/", {"email": "unspoken@example.com"})
        assert "unspoken" in str(dict(client.session)) and "unspoken" not in kept_sessions()

    def test_under_another_key_ends_without_an_error(
        self, client: Client, lea: User, settings: Settings
    ) -> None:
        people.log_in(client)
        assert people.is_in(client)
        before = settings.FIELD_KEYS
        settings.FIELD_KEYS = [Fernet.generate_key().decode()]
        crypto._field_cipher.cache_clear()
        try:
            answer = client.get("/portal")
        finally:
            settings.FIELD_KEYS = before
            crypto._field_cipher.cache_clear()
        assert answer.status_code == 302 and answer["Location"].startswith("/accounts/login/")


@pytest.mark.rule("secret.keys")
class TestSecretKey:
    def test_that_was_replaced_still_works_as_a_fallback(
        self, client: Client, acme: Merchant, unpaid: Checkout, settings: Settings
    ) -> None:
        settings.LOOKUP_KEY = old = settings.SECRET_KEY
        people.join(acme)
        other = Client()
        people.log_in(client)
        people.log_in(other)
        client.post("/accounts/password/reset/", {"email": people.EMAIL})
        reset = people.mailed(r"/accounts/password/reset/key/\S+")
        link = opt_in_link.url(unpaid, "app").partition("/pay/")[2]
        page = signing.dumps(["x"], salt="list")
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = FRESH, [old]
        assert people.is_in(other), "each session goes on under a key of its own"
        assert people.is_in(client)
        assert Client().get(f"/pay/{link}").status_code == 200
        assert Client().get(reset)["Location"].endswith("set-password/")
        assert signing.loads(page, salt="list") == ["x"]
        seen = UserSession.objects.values_list("session_key", flat=True)
        assert set(seen) == {browser.session.session_key for browser in (client, other)}
        settings.SECRET_KEY_FALLBACKS = []
        assert people.is_in(client), "the session was signed anew meanwhile"
        assert Client().get(f"/pay/{link}").status_code == 404

    def test_can_change_without_changing_the_lookup_digests(self, settings: Settings) -> None:
        settings.LOOKUP_KEY = settings.SECRET_KEY
        before = crypto.keyed_digest("e-mail", "lea@example.com")
        settings.SECRET_KEY = FRESH
        assert crypto.keyed_digest("e-mail", "lea@example.com") == before
        settings.LOOKUP_KEY = FRESH
        assert crypto.keyed_digest("e-mail", "lea@example.com") != before
