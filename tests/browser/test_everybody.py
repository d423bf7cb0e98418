"""The payer's page with the keyboard, with large letters, in forced colours, without motion, and in print."""

from collections.abc import Callable
from itertools import count

import pytest
from playwright.sync_api import Page, expect

from tests.browser.order import Order
from tests.browser.test_buying import GOOD, bears, heading, pay

pytestmark = pytest.mark.journey
# Phone numbers. Each payer gets a new one, because a number gets at most one code in 30 seconds.
_numbers = count(603)
PLACES_TO_STAND = 60  # more than the number of elements on any page that can have the focus


def go_to(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus.

    All elements that have the focus on the way must be visible and not covered.
    """
    for _ in range(PLACES_TO_STAND):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement !== document.body"):
            assert page.evaluate(IS_SEEN), page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab never leads to {selector}.")


IS_SEEN = """() => {
  const it = document.activeElement;
  const box = it.getBoundingClientRect(), style = getComputedStyle(it);
  const over = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  const isMarked = style.outlineStyle !== "none" || style.boxShadow !== "none";
  const isOnTop = it === over || it.contains(over) || over?.contains(it);
  return isMarked && box.width > 0 && isOnTop;
}"""


def test_a_payer_can_pay_with_only_the_keyboard(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto(order.url)
    go_to(page, "#phone")
    page.keyboard.type("07700 900601")
    page.keyboard.press("Enter")
    heading(page, "Enter the 6-digit code")
    page.keyboard.type(page.inner_text(".notice code"))  # the field has the focus
    page.keyboard.press("Enter")
    heading(page, "Who’s in on this?")
    go_to(page, "#split-equal")
    page.keyboard.press("Space")
    expect(page.locator("#split-equal")).to_be_checked()
    go_to(page, "#people")
    page.keyboard.press("ArrowUp")
    go_to(page, "#your-name")
    page.keyboard.type("Lea")
    page.keyboard.press("Enter")  # this must let the mates pledge first, and not choose "All mine"
    heading(page, "No one else is in yet")
    go_to(page, "#pay-now")
    page.keyboard.press("Enter")
    heading(page, "Pay by card")
    go_to(page, "#number")
    page.keyboard.type(GOOD)
    page.keyboard.press("Tab")
    page.keyboard.type("0849")
    page.keyboard.press("Tab")
    page.keyboard.type("123")
    go_to(page, "#pay")
    page.keyboard.press("Enter")
    heading(page, "Held, not taken yet")
    order.merchant.capture(order.checkout_uuid)
    bears(page, "£90.00")
    go_to(page, "[data-print]")


def test_text_at_twice_the_size_fits_the_page(order: Order, open_page: Callable[..., Page]) -> None:
    """If letters are twice as large, the page still fits into a window of 640 pixels (WCAG 1.4.4, 1.4.10)."""
    page = open_page()
    page.set_viewport_size({"width": 640, "height": 800})
    page.goto(order.url)
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
    expect(page.locator("#phone")).to_be_visible()


@pytest.mark.long
def test_forced_colours_keep_every_mark_visible(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page(forced_colors="active")
    page.goto(order.url)
    border = page.evaluate("getComputedStyle(document.querySelector('#phone')).borderTopStyle")
    assert border == "solid"
    page.fill("#phone", "07700 900602")
    page.click("button.button-main")
    page.fill("#code", page.inner_text(".notice code"))
    page.click("button.button-main")
    page.wait_for_selector(".all-mine")
    chosen = "getComputedStyle(document.querySelector('#split-equal')).borderTopStyle"
    assert page.evaluate(chosen) == "solid"
    page.click("button.button-main")
    pay(page, GOOD)
    heading(page, "Held, not taken yet")
    dot = "getComputedStyle(document.querySelector('[aria-current] .place-dot')).borderTopStyle"
    assert page.evaluate(dot) == "solid"


def pay_all_of_it(page: Page, order: Order) -> None:
    page.goto(order.url)
    page.fill("#phone", f"07700 900{next(_numbers)}")
    page.click("button.button-main")
    page.fill("#code", page.inner_text(".notice code"))
    page.click("button.button-main")
    page.click("button.button-main")
    pay(page, GOOD)
    heading(page, "Held, not taken yet")


@pytest.mark.long
def test_nothing_moves_with_reduced_motion(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page(reduced_motion="reduce")
    pay_all_of_it(page, order)
    page.wait_for_timeout(300)
    running = "document.getAnimations().filter(it => it.playState === 'running').length"
    assert page.evaluate(running) == 0


@pytest.mark.long
def test_only_the_receipt_is_printed(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    pay_all_of_it(page, order)
    order.merchant.capture(order.checkout_uuid)
    heading(page, "Confirmed and paid.")
    page.emulate_media(media="print", color_scheme="dark")
    for kept in ("Acme Tickets", "£90.00", "Visa ending 4242", "Receipt", "Standing ticket"):
        expect(page.locator("body")).to_contain_text(kept)
    for left in ("#print", ".foot", "#return", ".opt-in"):
        for found in page.locator(left).all():
            expect(found).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.receipt dd')).color") == "rgb(0, 0, 0)"
