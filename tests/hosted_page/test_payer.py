"""What a payer's browser keeps: where https is, cookies of this host alone."""

import pytest
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from tests.hosted_page.browsers import Payer

pytestmark = pytest.mark.django_db


@pytest.fixture
def hosted(settings: Settings) -> None:
    """As it is outside of local."""
    settings.LOCAL, settings.COOKIE_PREFIX = False, "__Host-"
    settings.LANGUAGE_COOKIE_NAME = "__Host-language"
    settings.CSRF_COOKIE_NAME, settings.CSRF_COOKIE_SECURE = "__Host-csrftoken", True


@pytest.mark.rule("secret.cookies")
def test_are_of_this_host_alone_where_https_is(hosted: None, unpaid: Checkout) -> None:
    payer = Payer(unpaid)
    payer.sign_in()
    payer.client.post("/pay/language", {"language": "fr", "next": "/pay"})
    kept = payer.client.cookies
    assert {
        "__Host-payer_browser",
        "__Host-payer_code",
        "__Host-language",
        f"__Host-payer_{unpaid.pk.hex}",
    } <= set(kept)
    for name, cookie in kept.items():
        assert name.startswith("__Host-"), name
        assert (cookie["path"], cookie["domain"], cookie["secure"]) == ("/", "", True), name
        assert (cookie["samesite"], cookie["httponly"]) == ("Lax", True), name


def test_have_plain_names_in_local(unpaid: Checkout) -> None:
    payer = Payer(unpaid)
    payer.sign_in()
    assert f"payer_{unpaid.pk.hex}" in payer.client.cookies
    assert not any(name.startswith("__") for name in payer.client.cookies)
