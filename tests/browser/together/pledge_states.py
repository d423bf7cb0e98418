"""Gallery states while mates pledge before the lead pays: the waiting lead, the group link, and a mate's pledge."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.gallery import FINNS, Stage, give_card, runs_scripts, split


def collecting(stage: Stage) -> Page:
    """Return the page of a lead who has asked two mates to pledge before she pays."""
    page = stage.at_the_split()
    split(page, 2)
    page.click("#first")
    expect(page.locator("#pay-now")).to_be_visible()
    return page


def _link_of(lead: Page) -> str:
    return lead.get_attribute(".one-link", "data-url") or ""


def _mate_of(stage: Stage, lead: Page) -> Page:
    """Return the browser of a mate who has taken a share at the group link."""
    page = stage.open_page()
    page.goto(_link_of(lead))
    page.locator(".free").first.click()
    field = page.locator(".free-open[open] input[name=name]")
    if field.count():
        field.fill("Sam")
        page.click(".free-open[open] .button-main")
    expect(page.locator("#phone")).to_be_visible()
    return page


def _at_the_card(stage: Stage, lead: Page) -> Page:
    page = _mate_of(stage, lead)
    stage.sign_in(page)
    page.wait_for_selector("#number")
    return page


def pledged(stage: Stage, lead: Page) -> Page:
    page = _at_the_card(stage, lead)
    give_card(page, FINNS)
    expect(page.locator("#withdraw")).to_be_visible()
    return page


def _withdraws(stage: Stage) -> Page:
    page = pledged(stage, collecting(stage))
    page.click("#withdraw")
    return page


def _changes_card(stage: Stage) -> Page:
    page = pledged(stage, collecting(stage))
    page.click("#another-card")
    return page


def changes_split(stage: Stage) -> Page:
    """Return the page of a lead who has changed the share of a mate who had pledged."""
    lead = collecting(stage)
    pledged(stage, lead).context.close()
    lead.click(".change-split summary")
    lead.click(".change-split .button")
    lead.fill("#amount-2", "5")
    lead.click("#first")
    expect(lead.locator(".group-notice")).to_be_visible()
    return lead


def _some_are_in(stage: Stage) -> Page:
    lead = collecting(stage)
    pledged(stage, lead).context.close()
    if not runs_scripts(lead):
        lead.reload()  # sooner than the page reloads itself
    expect(lead.locator(".group-lines .look-pledged")).to_have_count(1)
    return lead


def _group_link(stage: Stage) -> Page:
    page = stage.open_page()
    page.goto(_link_of(_some_are_in(stage)))
    expect(page.locator(".group-come")).to_be_visible()
    return page


STATES: dict[str, Callable[[Stage], Page]] = {
    "50 everyone first, no one is in": collecting,
    "50 everyone first, some are in": _some_are_in,
    "51 everyone first, group link": _group_link,
    "52 a pledge, the card": lambda stage: _at_the_card(stage, collecting(stage)),
    "52 a pledge": lambda stage: pledged(stage, collecting(stage)),
    "52 a pledge, withdraw": _withdraws,
    "52 a pledge, another card": _changes_card,
    "53 everyone first, the split is changed": changes_split,
}
