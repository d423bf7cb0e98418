"""Logins, password resets and invitations work the same on localhost and on 127.0.0.1."""

import re
from typing import Any

import pytest
from django.test import Client

from payments.models import Merchant
from portal import team
from portal.models import Membership, Role, User
from tests.portal import people

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.rule("portal.passkeys")]
PORTAL = "http://localhost:8000"
NEW = "another bill on the table"


@pytest.fixture(params=["localhost:8000", "127.0.0.1:8000"])
def browser(request: pytest.FixtureRequest) -> Client:
    """Return a browser that uses one of the two host names."""
    return Client(headers={"Host": request.param})


def link_of_mail() -> str:
    """Return the path of the link in the last mail. Fail unless the link's host is localhost."""
    (link,) = re.findall(r"http://\S+/(?:accounts/password/reset/key|join)/\S+", str(people.mails()[-1].body))
    assert link.startswith(f"{PORTAL}/"), link
    return str(link.removeprefix(PORTAL))


def stays(answer: Any) -> str:
    """Return the path to which a response redirects.

    Fail if it redirects to a different host, because the browser does not send the session's cookie there.
    """
    assert answer.status_code in (302, 303), answer.content.decode()
    assert answer["Location"].startswith("/"), answer["Location"]
    return str(answer["Location"])


def test_login(browser: Client, lea: User) -> None:
    asked = stays(browser.get("/portal/keys"))
    assert asked == "/accounts/login/?next=/portal/keys"
    fields = {"login": people.EMAIL, "password": people.PASSWORD, "next": "/portal/keys"}
    assert stays(browser.post("/accounts/login/", fields)) == "/portal/keys"
    assert people.is_in(browser)


def test_reset(browser: Client, lea: User) -> None:
    stays(browser.post("/accounts/password/reset/", {"email": people.EMAIL}))
    form = stays(browser.get(link_of_mail()))
    assert browser.get(form).status_code == 200
    stays(browser.post(form, {"password1": NEW, "password2": NEW}))
    stays(people.log_in(browser, NEW))
    assert people.is_in(browser)


def test_invitation(browser: Client, acme: Merchant, lea: User) -> None:
    team.invite(Membership.objects.get(user=lea), "max@acme.example", Role.SUPPORT)
    assert stays(browser.post(link_of_mail(), {"password": people.PASSWORD})) == "/portal"
    assert people.is_in(browser)
