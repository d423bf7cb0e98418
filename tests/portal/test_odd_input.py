"""Unusual text in a portal address or form does not cause an error."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from payments.models import Merchant
from portal.models import Role
from tests import factories
from tests.portal import stage
from webhooks.models import Delivery

ODD = (
    *("\x00", "%", "٣", "-1", "99999999999999999999", "NaN", "x" * 5000, "😀", "\ud800"),
    *("0001-01-01", "9999-12-31", "2026-02-30", "0001-01-01T00:00", "9999-12-31T23:59"),
    "01a1ff87-30a0-763f-ad37-2dcca246cbf9",
)
PLACES = {
    "/portal": ("range", "currency"),
    "/portal/checkouts": ("q", "state", "since", "until", "at_least", "cursor"),
    "/portal/checkouts.csv": ("q", "state", "since", "until", "at_least"),
    "/portal/balance": ("since", "until", "cursor"),
    "/portal/balance.csv": ("since", "until"),
    "/portal/webhooks": ("tested", "code"),
    "/portal/deliveries": ("q", "outcome", "event_type", "since", "until", "cursor"),
    "/portal/deliveries?outcome=parked": ("q", "since", "until", "cursor"),
    "/portal/audit": ("action", "person", "q", "since", "until", "cursor"),
}
FORMS = {
    "/portal/merchant": ("merchant",),
    "/portal/webhooks/endpoint": ("url", "event_types"),
    "/portal/deliveries/resend": ("which", "delivery", "since", "until", "confirm"),
    "/portal/keys/new": ("name", "scopes"),
    "/portal/team/invite": ("email", "role"),
    "/portal/settings/save": (
        "name",
        "brand_colour",
        "country",
        "time_zone",
        "return_hosts",
        "unpaid_minutes",
        "text",
        "language",
    ),
}


@pytest.fixture
def client(acme: Merchant) -> Client:
    factories.subscribe(acme, url=stage.URL, event_types=["*"])
    stage.parked(acme, stage.captured(acme))
    client = stage.browser(stage.person(acme, Role.OWNER))
    client.raise_request_exception = False
    return client


ONE_BY_ONE = pytest.mark.parametrize(
    "is_alone", [False, pytest.param(True, marks=pytest.mark.long)], ids=["all at once", "each alone"]
)


@ONE_BY_ONE
@pytest.mark.parametrize("place", PLACES)
def test_in_an_address(client: Client, place: str, is_alone: bool) -> None:
    for typed in _queries(PLACES[place], is_alone):
        asked = f"{place}{'&' if '?' in place else '?'}{typed}"
        answer: Any = client.get(asked)
        assert answer.status_code in {200, 302}, asked
        if answer.streaming:
            assert b"".join(answer.streaming_content)


@ONE_BY_ONE
@pytest.mark.parametrize("place", FORMS)
def test_in_a_form(client: Client, place: str, is_alone: bool) -> None:
    for typed in _queries(FORMS[place], is_alone):
        body = f"which=parked&{typed}"
        answer = client.post(place, body, content_type="application/x-www-form-urlencoded")
        assert answer.status_code in {200, 302, 404, 422}, body


def _queries(names: tuple[str, ...], is_alone: bool) -> Iterator[str]:
    """Yield query strings with the unusual texts as values of the parameters.

    With `is_alone`, each query has one parameter. Otherwise, each query has all parameters with the same text, which
    is shortened so that the query does not become too long.
    """
    for text in ODD:
        quoted = _quoted(text if is_alone else text[: 5000 // len(names)])
        said = [f"{name}={quoted}" for name in names]
        yield from said if is_alone else ["&".join(said)]


@pytest.mark.parametrize("attempt", ODD)
def test_in_a_delivery(client: Client, attempt: str) -> None:
    delivery = Delivery.objects.get(status="parked")
    assert client.get(f"/portal/deliveries/{delivery.pk}?attempt={_quoted(attempt)}").status_code == 200


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("url", ["http://[", "http://[::1", "x" * 5000, "", "//", "http://testserver/portal"])
def test_in_the_address_of_the_page_that_asks(url: str) -> None:
    client = Client(raise_request_exception=False)
    headers = {"hx-request": "true", "hx-current-url": url}
    assert client.get("/portal", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "place", ["checkouts?state", "deliveries?outcome", "refunds?state", "requests?outcome", "audit?action"]
)
def test_of_a_choice_that_a_filter_does_not_have_is_named(client: Client, place: str) -> None:
    page = client.get(f"/portal/{place}=lost").content.decode()
    assert re.search(r"No such (state|outcome|action)\. The list is not filtered\.", page)
    assert 'aria-invalid="true"' in page
    assert "The list is not filtered." not in client.get(f"/portal/{place}=").content.decode()


@pytest.mark.parametrize("place", ["checkouts", "refunds", "deliveries", "balance", "audit"])
def test_of_an_invalid_day_says_that_the_list_is_not_filtered(client: Client, place: str) -> None:
    said = "Enter a valid date"
    page = client.get(f"/portal/{place}?since=abc").content.decode()
    assert said in page and "The list is not filtered." in page
    assert said not in client.get(f"/portal/{place}?since=").content.decode()
