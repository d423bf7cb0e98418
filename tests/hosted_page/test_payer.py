"""The payer's cookies. With https, only the service's own host can set and read them."""

import re
import time
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from hosted_page import payer
from tests.factories import CustomerFactory
from tests.hosted_page.browsers import PHONE, Payer

pytestmark = pytest.mark.django_db


@pytest.fixture
def hosted(settings: Settings) -> None:
    """Set the cookie settings that apply outside `local`."""
    settings.LOCAL, settings.COOKIE_PREFIX = False, "__Host-"
    settings.LANGUAGE_COOKIE_NAME = "__Host-language"
    settings.CSRF_COOKIE_NAME, settings.CSRF_COOKIE_SECURE = "__Host-csrftoken", True


@pytest.mark.rule("secret.cookies")
def test_cookies_are_limited_to_this_host_under_https(hosted: None, unpaid: Checkout) -> None:
    visitor = Payer(unpaid)
    visitor.sign_in()
    visitor.client.post("/pay/language", {"language": "fr", "next": "/pay"})
    kept = visitor.client.cookies
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


def test_cookies_have_plain_names_in_local_mode(unpaid: Checkout) -> None:
    visitor = Payer(unpaid)
    visitor.sign_in()
    assert f"payer_{unpaid.pk.hex}" in visitor.client.cookies
    assert not any(name.startswith("__") for name in visitor.client.cookies)


@pytest.mark.rule("secret.cookies")
@pytest.mark.parametrize("name", ["Łukasz", "\N{SNOWMAN}" * 22, "x", "a" * 23, "é" * 22])
def test_a_browser_id_that_we_did_not_issue_is_replaced(unpaid: Checkout, name: str) -> None:
    # An HTTP server passes on the bytes of a header as Latin-1 text.
    sent = f"payer_browser={name}".encode().decode("latin-1")
    answer = Client().post(f"/pay/phone?id={unpaid.pk}", {"phone": PHONE}, headers={"cookie": sent})
    assert answer.status_code == 303
    # This raises an error if the header contains characters that a server cannot write.
    answer.cookies.output().encode("latin-1")
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", answer.cookies["payer_browser"].value)


def test_a_browser_id_that_we_issued_is_kept(rf: RequestFactory) -> None:
    name = payer.browser_of(rf.get("/pay"))
    request = rf.get("/pay", headers={"cookie": f"payer_browser={name}"})
    assert payer.browser_of(request) == name and payer.claim_of(request) != ""
    strange = rf.get("/pay", headers={"cookie": "payer_browser=strange"})
    assert payer.claim_of(strange) == "", "whoever makes up a name has taken no share"


def signed_in(rf: RequestFactory, subject: UUID, person: UUID) -> HttpRequest:
    """Return a request with the cookie of a new sign-in."""
    response = HttpResponse()
    payer.sign_in_browser(rf.get("/pay"), response, payer.begin_sign_in(subject, person, is_proven=True))
    request = rf.get("/pay")
    request.COOKIES = {name: morsel.value for name, morsel in response.cookies.items()}
    return request


def test_a_request_opens_each_cookie_once_and_reads_a_sign_in_once(
    monkeypatch: pytest.MonkeyPatch, rf: RequestFactory, django_assert_num_queries: Any
) -> None:
    subject, person = uuid4(), CustomerFactory.create().pk
    request = signed_in(rf, subject, person)
    opened: list[str] = []
    loads = signing.loads

    def counted(cookie: str, *, salt: str, max_age: int | None) -> object:
        opened.append(cookie)
        return loads(cookie, salt=salt, max_age=max_age)

    monkeypatch.setattr(signing, "loads", counted)
    with django_assert_num_queries(1):
        for _ in range(3):
            assert payer.customer_of(request, subject) == person and payer.is_proven(request, subject)
            assert payer.customer_of(request, uuid4()) is None
            assert payer.timed_out_customer(request, subject) is None
    assert len(opened) == 4, "the one that exists, and three that do not"
    another = rf.get("/pay")
    assert payer.customer_of(another, subject) is None, "a request learns nothing from the one before"


@pytest.mark.rule("sign_in.session")
def test_a_cookie_that_is_forged_or_too_old_costs_no_query(
    monkeypatch: pytest.MonkeyPatch, rf: RequestFactory, django_assert_num_queries: Any
) -> None:
    subject, other = uuid4(), uuid4()
    request = signed_in(rf, subject, CustomerFactory.create().pk)
    cookie = request.COOKIES[payer.cookie_name(subject.hex)]
    forged = signing.dumps([subject.hex, uuid4().hex], salt=payer.SALT, key="another key of the same length")
    with django_assert_num_queries(0):
        for at, value in ((other, cookie), (subject, forged), (subject, cookie[:-1]), (subject, "")):
            visit = rf.get("/pay")
            visit.COOKIES = {payer.cookie_name(at.hex): value}
            assert payer.customer_of(visit, at) is None
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + payer.NOTICE_SECONDS + 2)
        assert (
            payer.customer_of(request, subject) is None and payer.timed_out_customer(request, subject) is None
        )


@pytest.mark.parametrize(("older", "is_in"), [(payer.LIFE - 5, True), (payer.LIFE + 5, False)])
def test_a_cookie_ends_also_within_a_request_that_has_opened_it(
    monkeypatch: pytest.MonkeyPatch, rf: RequestFactory, older: int, is_in: bool
) -> None:
    subject, person = uuid4(), CustomerFactory.create().pk
    request = signed_in(rf, subject, person)
    assert payer.customer_of(request, subject) == person
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + older)
    assert (payer.customer_of(request, subject) == person) is is_in
    assert (payer.timed_out_customer(request, subject) == person) is not is_in
