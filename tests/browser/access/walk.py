"""Visits the payers' pages and the portal's main pages, and calls a function on each page."""

from collections.abc import Callable

from playwright.sync_api import Browser, Page, expect

from tests.browser.gallery import GOOD, Stage, at, give_card, split, stay
from tests.journeys.receiver import Receiver
from tests.journeys.service import Service

Look = Callable[[str, Page], None]


def payers(service: Service, browser: Browser, look: Look) -> None:
    """Visit the pages of an order with two mates. One mate opens a pay link, and the other opens the group link."""
    stage = Stage(service, lambda: _open(browser))
    order = stage.order()
    page = stage.come(order)
    look("phone", page)
    stage.ask_for_code(page)
    look("code", page)
    page.fill("#code", page.inner_text(".notice code"))
    page.click("button.button-main")
    expect(page.locator(".all-mine")).to_be_visible()
    split(page, 2)
    look("split", page)
    page.click("#continue")
    page.wait_for_selector("#number")
    look("card", page)
    give_card(page, GOOD)
    look("held", at(page, "held"))
    stage.merchant.capture(order.checkout_uuid)
    look("bill", stay(at(page, "confirmed")))
    for name, link in (("mate", ".group-line [data-url]"), ("group", ".one-link")):
        other = stage.open_page()
        other.goto(page.get_attribute(link, "data-url") or "")
        look(name, other)
        other.context.close()
    page.context.close()


def portal(service: Service, browser: Browser, endpoint: Receiver, look: Look) -> None:
    """Visit the portal of a merchant with one sale."""
    merchant = service.new_merchant("Acme Tickets")
    merchant.subscribe(endpoint.url, "*")
    uuid = merchant.create()
    merchant.call("POST", f"sandbox/v1/checkouts/{uuid}/pay", {})
    page = _open(browser)
    page.goto(f"{service.base_url}/accounts/login/")
    for field, words in zip(("#login", "#password"), merchant.owner, strict=True):
        page.fill(field, words)
    page.click("button.button-pen")
    page.wait_for_url("**/portal")
    paths = {"home": "", "checkouts": "/checkouts", "checkout": f"/checkouts/{uuid}", "webhooks": "/webhooks"}
    for name, path in paths.items():
        page.goto(f"{service.base_url}/portal{path}")
        look(name, page)
    page.context.close()


def _open(browser: Browser) -> Page:
    return browser.new_context(viewport={"width": 375, "height": 812}, locale="en-GB").new_page()
