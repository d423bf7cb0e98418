"""A page that asks for a proof of identity says what the proof is for. "Cancel" leads back to the previous page."""

import pytest
from django.test import Client

from payments.models import Merchant
from portal.models import Role
from portal.templatetags import reauthentication
from portal.urls import accounts, portal
from tests.portal import people, stage

pytestmark = pytest.mark.django_db
ASKED = "/accounts/reauthenticate/"
client = stage.client_of(Role.OWNER)


def cancel_address(client: Client, address: str, came_from: str = "") -> str:
    headers = {"Referer": came_from} if came_from else {}
    page = client.get(address, headers=headers).content.decode()
    return page.partition(">Cancel</a>")[0].rpartition('href="')[2].rstrip('"')


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("/portal/webhooks/rotate", "rotate the signing secret"),
        ("/admin/payments/merchant/", "make this change"),
        ("/accounts/2fa/codes/", "see your recovery codes"),
        ("/nowhere", "continue"),
        ("//evil.example/portal/webhooks/rotate", "continue"),
        ("", "continue"),
    ],
)
def test_the_page_names_the_step(client: Client, step: str, words: str) -> None:
    page = client.get(ASKED, {"next": step}).content.decode()
    assert f'<p class="lead">Enter your password to {words}.</p>' in page


def test_each_named_step_exists() -> None:
    names = {pattern.name for pattern in (*portal, *accounts)}
    assert reauthentication.STEPS.keys() <= names


@pytest.mark.parametrize(
    ("came_from", "step", "cancel"),
    [
        ("http://testserver/portal/keys?a=1", "/portal/keys/new", "http://testserver/portal/keys?a=1"),
        ("http://testserver/accounts/2fa/", "/accounts/2fa/codes/", "http://testserver/accounts/2fa/"),
        ("http://testserver/accounts/2fa/reauthenticate/?next=x", "/portal/keys/new", "/portal/keys/new"),
        ("https://evil.example/portal", "/portal/keys/new", "/portal/keys/new"),
        ("javascript:alert(1)", "/portal/keys/new", "/portal/keys/new"),
        ("", "/admin/payments/merchant/", "/admin/payments/merchant/"),
        ("", "/accounts/2fa/codes/", "/accounts/2fa/"),
        ("", "//evil.example/portal", "/accounts/2fa/"),
        ("", "https://evil.example/portal", "/accounts/2fa/"),
        ("", "", "/accounts/2fa/"),
    ],
)
def test_cancel_leads_back_only_to_a_page_of_this_site(
    client: Client, came_from: str, step: str, cancel: str
) -> None:
    assert cancel_address(client, f"{ASKED}?next={step}", came_from) == cancel


def test_cancel_of_a_step_without_a_page_shows_its_form(client: Client, acme: Merchant) -> None:
    assert client.get("/portal/webhooks/approve")["Location"] == "/portal/webhooks"
    assert people.is_in(client)
