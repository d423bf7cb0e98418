"""Four people split an order by item and pledge before the lead pays.

One mate withdraws the pledge. Another mate's pledge ends, because the lead then pays with the same card.
"""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import gallery
from tests.browser.gallery import FINNS, GOOD, Stage
from tests.journeys.service import Service

pytestmark = pytest.mark.journey
ENGLISH: dict[str, Any] = {"locale": "en-GB", "color_scheme": "light"}
GERMAN: dict[str, Any] = {"locale": "de-DE", "color_scheme": "dark"}
AMYS = "378282246310005"


class Hand:
    """A mate who uses a phone. The class counts the taps, and the fields that the mate fills in."""

    def __init__(self, page: Page) -> None:
        self.page, self.taps, self.fields = page, 0, 0

    def tap(self, selector: str) -> None:
        self.page.locator(selector).first.click()
        self.taps += 1

    def fill(self, selector: str, text: str) -> None:
        self.page.fill(selector, text)
        self.fields += 1


def split_by_item(lead: Page) -> str:
    """Let the lead keep one ticket and leave the others free. Return the group link."""
    lead.check("#split-item")
    lead.fill("#your-name", "Lea")
    lead.locator("button[data-more]").first.click()
    lead.click("#first")
    expect(lead.locator("#pay-now")).to_be_visible()
    return lead.get_attribute(".one-link", "data-url") or ""


def take_a_ticket(page: Page, link: str, name: str, card: str = "") -> Hand:
    """Take one ticket at the group link and pledge with a card, by default with the card of "Use test card"."""
    hand = Hand(page)
    page.goto(link)
    hand.tap("button[data-more]")
    hand.fill("#your-name", name)
    hand.tap("[data-take]")
    hand.fill("#phone", f"07400 {next(gallery.numbers)}")
    hand.tap("button.button-main")
    hand.fill("#code", page.inner_text(".notice code"))
    hand.tap("button.button-main")
    page.wait_for_selector("#number")
    hand.tap("#use-test-card")
    if card:
        page.fill("#number", card)
        page.fill("[name=code]", "1234" if card == AMYS else "123")
    hand.tap("#pay")
    expect(page.locator("#withdraw")).to_be_visible()
    return hand


@pytest.mark.rule("pledge.page", "split.free_units")
@pytest.mark.parametrize("reader", [pytest.param(ENGLISH, id="en"), pytest.param(GERMAN, id="de")])
def test_four_people_share_by_item(
    service: Service, open_page: Callable[..., Page], reader: dict[str, Any]
) -> None:
    def opened(**more: Any) -> Page:
        return open_page(**reader | more)

    stage = Stage(service, opened)
    order = stage.order()
    lead = stage.at_the_split(order)
    link = split_by_item(lead)
    finn, zoe, ade = (opened() for _mate in range(3))
    take_a_ticket(finn, link, "Finn", FINNS)
    take_a_ticket(ade, link, "Ade", AMYS)
    ade.click("#withdraw")
    ade.locator("#withdraw-details button").click()
    expect(ade.locator(".notice.tone-move")).to_be_visible()
    hand = take_a_ticket(zoe, link, "Zoe", GOOD)
    assert (hand.taps, hand.fields) == (6, 3)
    expect(lead.locator(".group-lines .look-pledged")).to_have_count(2)

    lead.click("#pay-now")
    lead.wait_for_selector("#number")
    gallery.give_card(lead, GOOD)  # Zoe used the same card, so her pledge ends
    gallery.at(lead, "held")
    expect(zoe.locator("#withdraw")).to_have_count(0)
    stage.merchant.capture(order.checkout_uuid)
    gallery.at(lead, "confirmed")
    expect(lead.locator(".group-lines .look-paid")).to_have_count(1, timeout=15_000)
    expect(finn.locator(".badge.tone-done")).to_be_visible(timeout=15_000)
    expect(zoe.locator("#number, .notice")).not_to_have_count(0, timeout=15_000)
    service.prove_ledger()


def test_the_split_without_script_shows_only_sums_that_were_calculated(
    service: Service, open_page: Callable[..., Page]
) -> None:
    stage = Stage(service, lambda **options: open_page(java_script_enabled=False, **options))
    page = stage.at_the_split()
    page.check("#split-item")
    expect(page.locator(".share-bar")).to_be_hidden()
    page.set_viewport_size({"width": 480, "height": 812})
    show, add = (page.locator(f"#items [name={name}]").bounding_box() for name in ("show", "add"))
    assert show and add and show["y"] == add["y"] and add["x"] - show["x"] - show["width"] == 8
    page.check("#split-own")
    for sums in (".share-bar", ".own-tally", "[data-left]"):
        expect(page.locator(sums)).to_be_hidden()
    page.fill("#amount-2", "4")
    page.click("noscript button >> visible=true")
    expect(page.locator("[data-left]")).to_have_text("£91.50")
    expect(page.locator(".own-tally")).to_contain_text("Adds up")
    expect(page.locator(".share-bar")).to_be_visible()
