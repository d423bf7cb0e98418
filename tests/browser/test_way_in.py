"""What a payer types and taps on the way to the held page, and what becomes of it when something goes wrong."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.order import Order
from tests.browser.test_buying import GOOD, heading
from tests.browser.test_coming_back import sign_in

pytestmark = pytest.mark.journey
READS_TEXTS = """
window.OTPCredential = class {};
navigator.credentials.get = asked => new Promise(done => {
  window.asked = asked;
  window.comes = code => done({code});
});
"""
TELLS = """
addEventListener("change", () => window.did("field"), true);
addEventListener("click", event => event.detail && window.did("tap"), true);
"""


def fill_in_card(page: Page, number: str = GOOD) -> None:
    page.fill("#number", number)
    page.fill("#expiry", "08 / 49")
    page.fill("[name=code]", "123")


def test_a_mistyped_card_number_is_not_sent(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto(order.url)
    sign_in(page, "07700 900701")
    page.click(".all-mine")
    fill_in_card(page, "4242 4242 4242 4241")
    posts: list[str] = []
    page.on("request", lambda request: posts.append(request.method))
    page.click("#pay")
    expect(page.locator("#number-typo")).to_be_visible()
    expect(page.locator("#number")).to_be_focused()
    expect(page.locator("#number")).to_have_value("4242 4242 4242 4241")
    expect(page.locator("[name=code]")).to_have_value("123")
    page.click("#pay")  # it may be tapped again
    assert "POST" not in posts
    page.fill("#number", GOOD)
    expect(page.locator("#number-typo")).to_be_hidden()
    expect(page.locator("#number")).not_to_have_attribute("aria-invalid", "true")
    page.click("#pay")
    heading(page, "Held, not taken yet")


def test_a_code_that_the_phone_reads_signs_in(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.add_init_script(READS_TEXTS)
    page.goto(order.url)
    page.fill("#phone", "07700 900702")
    page.click("button.button-main")
    heading(page, "Enter the 6-digit code")
    page.wait_for_function("window.asked")
    assert page.evaluate("window.asked.otp.transport") == ["sms"]
    page.evaluate("code => window.comes(code)", page.inner_text(".notice code"))
    heading(page, "Who’s in on this?")


def test_whoever_shares_says_a_name_before_it_is_sent(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto(order.url)
    sign_in(page, "07700 900703")
    expect(page.locator("#continue")).to_be_hidden()
    page.check("#split-equal")
    page.click("#continue")
    expect(page.locator("#your-name")).to_be_focused()
    expect(page.locator("#your-name-error")).to_be_visible()
    page.fill("#your-name", "Lea")
    page.fill("#people", "9")
    expect(page.locator("[name=name]:visible")).to_have_count(0)
    page.click("text=Add names")
    expect(page.locator("[name=name]:visible")).to_have_count(8)
    page.fill("#name-9", "Zoe")
    page.keyboard.press("Enter")
    expect(page.locator(".held-rows")).to_contain_text("Your 8 mates’ shares")


def test_alone_and_returning_it_is_three_fields_and_three_taps(
    order: Order, open_page: Callable[..., Page], accessible: Callable[[Page], None]
) -> None:
    page = open_page()
    page.goto(order.url)
    expect(page.locator("#remember")).not_to_be_checked()
    page.check("#remember")
    sign_in(page, "07700 900704")
    heading(page, "Who’s in on this?")
    page.goto(Order(order.service, order.merchant, order.merchant.create()).url)
    heading(page, "Is this still you?")
    accessible(page)
    done: list[str] = []
    page.expose_function("did", done.append)
    page.add_init_script(TELLS)
    page.reload()
    page.click("text=Continue as •••• 0704")
    page.click("text=All mine")
    fill_in_card(page)
    page.click("#pay")
    heading(page, "Held, not taken yet")
    assert (done.count("field"), done.count("tap")) == (3, 3)
