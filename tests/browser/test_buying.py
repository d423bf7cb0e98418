"""A customer with a phone buys tickets in the demo shop, and pays for them."""

import re
from collections.abc import Callable
from datetime import datetime
from itertools import count

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.service import Service

pytestmark = pytest.mark.journey

CARD_PAGE = re.compile("Pay (by card|£)")  # the headings that a lead and a mate see
_numbers = count(900_350)  # the phone numbers must differ from those of the gallery
WITH_AND_WITHOUT = [
    pytest.param(True, id="with script"),
    pytest.param(False, id="without script", marks=pytest.mark.long),
]
GOOD, DECLINED = "4242424242424242", "4000000000000002"
Visit = Callable[[Page], None]


def nothing(page: Page) -> None:
    """Leave the page as it is."""


def sign_in(page: Page, look: Visit = nothing) -> None:
    look(page)
    page.fill("#phone", f"07700 {next(_numbers)}")
    page.click("text=Text me a code")
    look(page)
    page.fill("#code", page.inner_text(".notice code"))
    page.click("main button:has-text('Continue')")


def pay(page: Page, number: str, look: Visit = nothing) -> None:
    expect(page.locator("h1")).to_have_text(CARD_PAGE)
    look(page)
    page.fill("#number", number)
    page.fill("#expiry", "08 / 49")
    page.fill("[name=code]", "123")
    page.click("#card-form button:has-text('Pay £')")


def heading(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.locator("h1")).to_have_text(text, timeout=10_000)


def bears(page: Page, amount: str) -> None:
    """Fail unless the page is the group's bill and shows that the lead bears this amount."""
    expect(page.locator(".group-bears")).to_contain_text(f"You’re covering {amount}", timeout=10_000)


def buy(page: Page, service: Service, look: Visit = nothing) -> None:
    """Choose two tickets in the shop, and go to the checkout."""
    page.goto(service.shop_url)
    look(page)
    page.locator("button:has-text('Buy')").first.click()


def moment(page: Page, event: str) -> float:
    """Return the time of an event, as the order page shows it."""
    at = page.locator("li", has_text=event).locator("time").get_attribute("datetime")
    return datetime.fromisoformat(at or "").timestamp()


class TestBuying:
    @pytest.mark.parametrize("script", WITH_AND_WITHOUT)
    def test_ends_with_tickets_in_the_shop(
        self, service: Service, open_page: Callable[..., Page], accessible: Visit, script: bool
    ) -> None:
        look = accessible if script else nothing  # axe needs JavaScript
        page = open_page(java_script_enabled=script)
        buy(page, service, look)
        sign_in(page, look)
        look(page)
        page.check("#split-equal")
        page.fill("#people", "3")
        page.fill("#your-name", "Lea")
        page.click("#continue")
        pay(page, DECLINED, look)
        expect(page.locator("[role=alert]")).to_contain_text("Your bank declined this card.")
        look(page)
        pay(page, GOOD)
        bears(page, "£48.50")
        look(page)
        page.click(".ways-out a >> visible=true")
        heading(page, "Your tickets are ready")
        look(page)
        assert moment(page, "Money held") <= moment(page, "Captured")
        service.prove_ledger()

    @pytest.mark.long  # refunds through the portal are tested by `make test`
    def test_refunds_from_the_order_page(
        self, service: Service, open_page: Callable[..., Page], accessible: Visit
    ) -> None:
        page = open_page()
        buy(page, service)
        sign_in(page)
        page.click("text=All mine")
        pay(page, GOOD)
        heading(page, "Confirmed and paid.")
        page.click("#return")
        page.click("button:has-text('Refund')")
        heading(page, "You have your money back")
        accessible(page)
        service.prove_ledger()


class TestTheWayBack:
    def test_cancel_leads_to_the_shop(self, service: Service, open_page: Callable[..., Page]) -> None:
        page = open_page()
        buy(page, service)
        page.click("text=Back to")
        expect(page).to_have_url(f"{service.shop_url}/")
