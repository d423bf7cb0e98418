"""A captured order of £95.50 that several people share, and the actions of its payers.

By default, six people share the order.
"""

from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

from tests.browser.gallery import FINNS, GOOD, Stage, at, give_card
from tests.browser.order import Order

NAMES = ("Finn", "Priya", "نور", "Sam", "")
AMOUNTS = {2: "31.83", 5: "15.91"}  # each mate's amount, by the number of mates
BACK = ".group-line[data-status=reimbursed]"


@dataclass(frozen=True)
class Table:
    """A shared order, and its lead's page. `place` is a mate's row on the bill. The first mate is in row 2."""

    stage: Stage
    order: Order
    lead: Page

    @property
    def link(self) -> str:
        """Return the group link."""
        return self.lead.locator(".one-link").get_attribute("data-url") or ""

    def line(self, place: int) -> Locator:
        return self.lead.locator(".group-line").nth(place - 1)

    def own_link(self, place: int) -> str:
        return self.line(place).locator("[data-url]").get_attribute("data-url") or ""

    def come(self, link: str = "") -> Page:
        """Open the group link, or the given link, in a new browser."""
        page = self.stage.open_page()
        page.goto(link or self.link)
        return page

    def take(self, name: str) -> Page:
        """Take the share with this name through the group link, and return the mate's page."""
        page = self.come()
        page.click(f"button.free:has-text('{name}')")
        expect(page.locator(".group-kept")).to_be_visible()
        return page

    def pay(self, name: str) -> Page:
        return at(self.stage.mate_pays(self.take(name), FINNS), "share_paid")

    def say_no(self, place: int) -> None:
        page = self.come(self.own_link(place))
        page.click(".leave button")
        at(page, "declined").context.close()

    def keep(self, place: int) -> None:
        """Let the lead stop asking this mate and cover the share herself."""
        line = self.line(place)
        line.locator(".group-more > summary").click()
        form = line.locator("details:has(> form[action*=cancel-share])")
        form.locator("summary").click()
        form.locator(".button-ink").click()
        expect(line).to_have_attribute("data-status", "cancelled")

    def look(self, selector: str = ".group-bears", count: int = 1) -> Page:
        """Reload the lead's page until `count` elements match the selector, and return the page."""
        self.lead.goto(self.order.url)
        return until(self.lead, selector, count)


def laid(stage: Stage, names: tuple[str, ...] = NAMES) -> Table:
    """Split, pay and capture an order, and return the order. No mate has done anything yet."""
    order = stage.order()
    page = stage.at_the_split(order)
    page.check("#split-own")
    page.fill("#your-name", "Lea")
    for place, name in enumerate(names, start=2):
        if not page.locator(f"#name-{place}").is_visible():
            page.click("[data-add]")
        page.fill(f"#name-{place}", name)
        page.fill(f"#amount-{place}", AMOUNTS[len(names)])
    page.click("#continue")
    page.wait_for_selector("#number")
    give_card(page, GOOD)
    at(page, "held")
    stage.merchant.capture(order.checkout_uuid)
    return Table(stage, order, at(page, "confirmed"))


def until(page: Page, selector: str, count: int = 1) -> Page:
    """Reload a page until `count` elements match the selector. Some pages do not update themselves."""
    for _ in range(40):
        if page.locator(selector).count() == count:
            return page
        page.wait_for_timeout(500)
        page.reload()
    raise AssertionError(f"{selector} never came to {page.url}")
