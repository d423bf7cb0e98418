"""People who log in during tests. Lea owns Acme. She has a password, and in some tests an authenticator app."""

import json
import re
import time
from io import StringIO
from typing import Any

from allauth.account.internal.flows import login
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.core import mail
from django.core.management import call_command
from django.test import Client

from payments.models import Merchant
from portal.mail import outbox
from portal.models import Membership, Role, User

EMAIL = "lea@acme.example"
PASSWORD = "a bill on the table"
HOME = "10.0.0.1"
ELSEWHERE = "10.0.0.2"


def join(merchant: Merchant, role: Role = Role.OWNER, email: str = EMAIL) -> User:
    """Create a person with a role for the merchant."""
    user = User.objects.create_user(email, PASSWORD)
    Membership.objects.create(merchant=merchant, user=user, role=role)
    return user


def set_up_app(user: User) -> str:
    """Set up an authenticator app and recovery codes, and return the app's secret."""
    secret: str = totp.generate_totp_secret()
    totp.TOTP.activate(user, secret)
    RecoveryCodes.activate(user)
    return secret


def code(secret: str, *, later: int = 0) -> str:
    """Return the app's code for the half minute that is `later` half minutes after the current one.

    If the current half minute ends within two seconds, first wait for the next one.
    """
    if time.time() % 30 > 28:
        time.sleep(2)
    counter = int(time.time()) // 30 + later
    return str(totp.format_hotp_value(totp.hotp_value(secret, counter)))


def prove(client: Client, user: User, method: str = "password", *, ago: float = 0) -> None:
    """Record in the browser's session that the person proved their identity `ago` seconds ago."""
    session = client.session
    session[login._AUTHENTICATION_METHODS_USER_SESSION_KEY] = str(user.pk)
    session[login.AUTHENTICATION_METHODS_SESSION_KEY] = [{"method": method, "at": time.time() - ago}]
    session.save()


def operate(client: Client, user: User | None = None) -> User:
    """Log in an operator, by default a superuser, with a fresh proof of identity."""
    operator = user or User.objects.create_superuser("operator@example.com")
    client.force_login(operator)
    prove(client, operator)
    return operator


def recovery_codes(user: User) -> list[str]:
    codes: list[str] = Authenticator.objects.get(user=user, type="recovery_codes").wrap().get_unused_codes()
    return codes


def log_in(client: Client, password: str = PASSWORD, *, email: str = EMAIL, at: str = HOME) -> Any:
    """Send e-mail and password to the login page, from the IP address `at`."""
    return client.post("/accounts/login/", {"login": email, "password": password}, REMOTE_ADDR=at)


def is_in(client: Client) -> bool:
    return client.get("/portal/security").status_code == 200


def mails() -> list[Any]:
    """Send the waiting mails, and return all mails that were sent so far."""
    outbox.send_due()
    return list(mail.outbox)


def mailed(pattern: str) -> str:
    """Return the first match of the pattern in the latest mail."""
    body = str(mails()[-1].body)
    found = re.search(pattern, body)
    assert found, body
    return found.group()


def create_merchant(*args: str) -> str:
    printed = StringIO()
    call_command("create_merchant", *args, stdout=printed)
    return printed.getvalue()


def get_token(client_id: str, secret: str) -> int:
    body = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    return Client().post("/oauth/token", json.dumps(body), content_type="application/json").status_code


def secret_in(page: object) -> str:
    (secret,) = re.findall(r"sk_[A-Za-z0-9_-]+", page.content.decode())  # type: ignore[attr-defined]
    return str(secret)
