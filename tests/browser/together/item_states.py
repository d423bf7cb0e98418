"""Gallery states of a split by item: the split step, the waiting lead, and the items at the group link."""

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.gallery import Stage, runs_scripts


def _add_one(page: Page, units: Locator) -> None:
    """Raise a number of units from 0 to 1. Without script, type it and press the button that calculates again."""
    if runs_scripts(page):
        units.locator("button[data-more]").click()
    else:
        units.locator("input").fill("1")
        page.click("noscript button[name=show] >> visible=true")


def _alone(stage: Stage) -> Page:
    """Return the split step of a lead who takes one ticket and leaves the others free."""
    page = stage.at_the_split()
    page.check("#split-item")
    page.fill("#your-name", "Lea")
    _add_one(page, page.locator("#items [data-units]").first)
    return page


def _with_a_mate(stage: Stage) -> Page:
    """Return the split step of a lead who assigns a ticket to Finn."""
    page = _alone(stage)
    page.click(".add-to-items >> visible=true")
    expect(page.locator("#name-2")).to_be_visible()
    page.fill("#name-2", "Finn")
    page.locator("[name=assign]").first.click()
    expect(page.locator(".unit-assign")).to_be_visible()
    _add_one(page, page.locator(".unit-assign [data-units]").nth(1))
    return page


def _waiting(stage: Stage) -> Page:
    page = _with_a_mate(stage)
    page.click("#first")
    expect(page.locator("#pay-now")).to_be_visible()
    return page


def _group_link(stage: Stage) -> Page:
    link = _waiting(stage).get_attribute(".one-link", "data-url") or ""
    page = stage.open_page()
    page.goto(link)
    _add_one(page, page.locator("[data-units]").first)
    expect(page.locator("[data-take]")).to_contain_text("£")
    return page


STATES: dict[str, Callable[[Stage], Page]] = {
    "53 split by item": _alone,
    "53 split by item, with a mate": _with_a_mate,
    "53 split by item, the lead waits": _waiting,
    "54 items at the group link": _group_link,
}
