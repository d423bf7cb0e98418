"""The menu as a page: "Back" leads only to portal pages, and the menu marks the page that the person came from."""

import re

import pytest
from django.test import Client

from checkout.models import Checkout
from payments import operator_stops
from payments.models import Merchant
from portal.models import Role
from tests.portal import stage

pytestmark = pytest.mark.django_db
HERE = "http://testserver"
ORDER = "/portal/checkouts/01a1ff87-30a0-763f-ad37-2dcca246cbf9"


client = stage.client_of(Role.OWNER)


def menu(client: Client, referrer: str = "") -> tuple[str, set[str]]:
    """Return the address of "Back", and the addresses of the marked menu entries."""
    shown = client.get("/portal/menu", headers={"referer": referrer} if referrer else None).content.decode()
    (back,) = re.findall(r'<a class="button side-menu" href="([^"]*)">Back</a>', shown)
    return back, set(re.findall(r'<a href="([^"]*)" aria-current="true">', shown))


@pytest.mark.parametrize(
    ("came_from", "place"),
    [
        ("/portal", "/portal"),
        ("/portal?range=24h", "/portal"),
        ("/portal/checkouts?q=A-1&state=held", "/portal/checkouts"),
        (ORDER, "/portal/checkouts"),
        (f"{ORDER}/refund", "/portal/checkouts"),
        ("/portal/settings/preview", "/portal/settings"),
        ("/portal/audit", "/portal/audit"),
    ],
)
def test_the_menu_links_back_to_the_page_and_marks_its_entry(
    client: Client, came_from: str, place: str
) -> None:
    assert menu(client, HERE + came_from) == (came_from.replace("&", "&amp;"), {place})


def test_the_menu_marks_no_entry_for_a_page_without_one(client: Client) -> None:
    assert menu(client, f"{HERE}/portal/security") == ("/portal/security", set())


@pytest.mark.parametrize(
    "referrer",
    [
        "",
        f"{HERE}/portal/menu",  # "Back" would lead to the menu itself
        f"{HERE}/portal/menu?x=1",
        f"{HERE}/portal/nothing-there",
        f"{HERE}/accounts/login/?next=/portal/menu",
        f"{HERE}/api/docs",
        "https://evil.example/portal/checkouts",
        "https://evil.example",
        f"{HERE}.evil.example/portal/checkouts",
        f"{HERE}@evil.example/portal/checkouts",
        f"{HERE}//evil.example/portal",
        "//evil.example/portal",
        f"{HERE}/portal/../\\evil.example",
        "javascript:alert(1)//testserver/portal",
        "http://[::1/portal",
    ],
)
def test_the_menu_links_home_after_any_other_page(client: Client, referrer: str) -> None:
    assert menu(client, referrer) == ("/portal", {"/portal"})


def test_the_menu_is_linked_from_every_other_page(client: Client) -> None:
    shown = client.get("/portal/keys").content.decode()
    assert '<a class="button side-menu" href="/portal/menu" aria-controls="side-nav">' in shown
    assert re.findall(r'<a href="([^"]*)" aria-current="page">', shown) == ["/portal/keys"]


@pytest.mark.rule("operator.stop")
@pytest.mark.parametrize("path", ["/portal", "/portal/keys", "/portal/refunds", "/portal/groups"])
def test_every_page_says_that_an_operator_has_stopped_payments(
    client: Client, acme: Merchant, path: str
) -> None:
    assert "Payments have been stopped" not in client.get(path).content.decode()
    operator_stops.suspend(acme, reason="test")
    page = client.get(path).content.decode()
    assert "Payments have been stopped since" in page and "merchant_suspended" in page
    assert str(acme.pk) in page


@pytest.mark.rule("operator.stop")
def test_a_stop_of_all_merchants_does_not_read_as_a_stop_of_this_one(
    client: Client, unpaid: Checkout
) -> None:
    order_page = f"/portal/checkouts/{unpaid.pk}"
    assert "unless the customer pays first" in client.get(order_page).content.decode()
    operator_stops.suspend(None, reason="test")
    page = client.get(order_page).content.decode()
    assert "Payments of all merchants have been stopped since" in page and "done nothing wrong" in page
    assert "503 <code>service_unavailable" in page and "merchant_suspended" not in page
    assert "unless payments work again and the customer pays first" in page


def test_the_address_of_the_portal_with_a_slash_leads_home(client: Client) -> None:
    assert client.get("/portal/", follow=True).redirect_chain == [("/portal", 302)]
