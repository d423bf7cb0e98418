"""Payers reload a page, go back, open a second tab, close it, return, or open the link on another phone."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.gallery import ASKS, FINNS, Stage, at, give_card
from tests.browser.order import Order
from tests.browser.test_buying import GOOD, bears, heading, pay
from tests.journeys.service import Service

pytestmark = pytest.mark.journey
LEA, FINN = "07700 900501", "07700 900502"
# Some browsers keep a page in memory although its headers forbid this, and later show its old state. This
# event simulates that the browser shows such a page.
OUT_OF_MEMORY = "dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"


def sign_in(page: Page, number: str) -> None:
    page.fill("#phone", number)
    page.click("button.button-main")
    enter_code(page)


def enter_code(page: Page) -> None:
    page.fill("#code", page.inner_text(".notice code"))
    page.click("button.button-main")


def reload(page: Page, words: str) -> None:
    """Fail unless the page has this heading before and after a reload."""
    heading(page, words)
    page.reload()
    heading(page, words)


@pytest.mark.long
def test_a_reload_changes_nothing_at_any_step(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto(order.url)
    reload(page, "Your mobile number")
    page.fill("#phone", "07700 900503")
    page.click("button.button-main")
    reload(page, "Enter the 6-digit code")
    enter_code(page)
    reload(page, "Who’s in on this?")
    page.check("#split-equal")
    page.fill("#people", "3")
    page.fill("#your-name", "Lea")
    page.click("#continue")
    reload(page, "Pay by card")
    expect(page.locator(".held-rows")).to_contain_text("Goes back as your 2 mates pay")
    pay(page, GOOD)
    reload(page, "Held, not taken yet")
    order.merchant.capture(order.checkout_uuid)
    bears(page, "£90.00")
    page.reload()
    bears(page, "£90.00")
    assert order.charges() == ["captured"]


@pytest.mark.long
def test_back_leads_to_the_previous_step_and_changes_there_take_effect(
    order: Order, open_page: Callable[..., Page]
) -> None:
    page = open_page()
    page.goto(order.url)
    sign_in(page, LEA)
    page.check("#split-equal")
    page.fill("#your-name", "Lea")
    page.click("#continue")
    expect(page.locator(".held-rows")).to_contain_text("Goes back when your mate pays")
    page.go_back()
    heading(page, "Who’s in on this?")
    page.click("text=All mine")
    heading(page, "Pay by card")
    expect(page.locator(".held-rows")).to_have_count(0)
    pay(page, GOOD)
    heading(page, "Held, not taken yet")
    page.go_back()  # after the payment, the payer goes back to the card page
    expect(page.locator("#number")).to_have_count(0)
    heading(page, "Held, not taken yet")
    assert order.charges() == ["held"]


@pytest.mark.long
def test_back_after_each_step_shows_a_page_from_which_the_payer_goes_on(
    order: Order, open_page: Callable[..., Page]
) -> None:
    page = open_page()
    page.goto(order.url)
    page.fill("#phone", "07700 900510")
    page.click("button.button-main")
    heading(page, "Enter the 6-digit code")
    page.go_back()
    page.goto(order.url)
    heading(page, "Enter the 6-digit code")  # the code from the SMS message can still be entered
    enter_code(page)
    heading(page, "Who’s in on this?")
    page.go_back()
    heading(page, "Who’s in on this?")
    page.click(".all-mine")
    page.wait_for_selector("#number")
    give_card(page, ASKS)
    page.wait_for_selector("[name=answer]")
    page.go_back()
    give_card(page, GOOD)  # the card page is shown again, and accepts another card
    heading(page, "Held, not taken yet")
    page.go_back()
    heading(page, "Held, not taken yet")
    assert order.charges().count("held") == 1


@pytest.mark.long
def test_back_after_a_corrected_error_does_not_ask_to_send_the_form_again(
    order: Order, open_page: Callable[..., Page]
) -> None:
    page = open_page(may_fail=True)  # the wrong forms are answered with status 422
    page.goto(order.url)
    page.fill("#phone", "12")
    page.click("button.button-main")
    heading(page, "Your mobile number")
    page.fill("#phone", "07700 900514")
    page.click("button.button-main")
    heading(page, "Enter the 6-digit code")
    page.go_back()
    heading(page, "Enter the 6-digit code")  # the payer's current step
    enter_code(page)
    page.check("#split-equal")
    page.click("#continue")
    expect(page.locator(".field-error:visible")).to_have_text("Enter your name.")
    page.fill("#your-name", "Lea")
    page.click("#continue")
    heading(page, "Pay by card")
    page.go_back()
    heading(page, "Who’s in on this?")
    expect(page.locator("#your-name")).to_have_value("Lea")


@pytest.mark.long
def test_a_second_tab_shows_what_the_first_has_done(order: Order, open_page: Callable[..., Page]) -> None:
    first = open_page()
    first.goto(order.url)
    sign_in(first, "07700 900504")
    second = first.context.new_page()
    second.goto(order.url)
    heading(second, "Who’s in on this?")
    first.click("button.button-main")
    pay(first, GOOD)
    heading(first, "Held, not taken yet")
    # The order is already paid, and the second tab says so.
    second.click("button.button-main")
    heading(second, "Held, not taken yet")
    assert order.charges() == ["held"]


@pytest.mark.long
def test_a_reopened_tab_shows_the_current_state(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto(order.url)
    sign_in(page, "07700 900505")
    page.click("button.button-main")
    pay(page, GOOD)
    heading(page, "Held, not taken yet")
    context = page.context
    page.close()
    order.merchant.capture(order.checkout_uuid)
    again = context.new_page()
    again.goto(order.url)
    heading(again, "Confirmed and paid.")
    expect(again.locator("#status")).to_contain_text("Visa ending 4242")


def test_two_taps_on_pay_are_one_payment(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto(order.url)
    sign_in(page, "07700 900506")
    page.click("button.button-main")
    page.fill("#number", GOOD)
    page.fill("#expiry", "08 / 49")
    page.fill("[name=code]", "123")
    page.dblclick("#pay")
    heading(page, "Held, not taken yet")
    order.comes_to("held")


@pytest.mark.long
def test_the_link_on_another_phone(order: Order, open_page: Callable[..., Page]) -> None:
    lea, finn = open_page(), open_page()
    lea.goto(order.url)
    sign_in(lea, "07700 900507")
    finn.goto(order.url)
    sign_in(finn, FINN)
    heading(finn, "Who’s in on this?")
    lea.reload()
    heading(lea, "Someone else has signed in to pay")
    finn.click("button.button-main")
    pay(finn, GOOD)
    heading(finn, "Held, not taken yet")
    lea.reload()
    heading(lea, "Held, not taken yet")
    expect(lea.locator("#status")).not_to_contain_text("4242")
    order.merchant.capture(order.checkout_uuid)
    heading(lea, "Confirmed and paid.")
    expect(lea.locator("#status")).not_to_contain_text("Receipt")
    expect(lea.locator("[data-auto-return]")).to_have_count(0)


def paid_meanwhile(page: Page, number: str, state: str) -> Page:
    """Pay in another tab, and return the first tab. The browser has shown its card form again from memory."""
    page.wait_for_selector("#number")
    other = page.context.new_page()
    other.goto(page.url)
    give_card(other, number)
    at(other, state).close()
    expect(page.locator("#number")).to_be_visible()
    page.evaluate(OUT_OF_MEMORY)
    return page


@pytest.mark.long
def test_back_shows_no_card_form_after_paying(service: Service, open_page: Callable[..., Page]) -> None:
    stage = Stage(service, open_page)
    lea = paid_meanwhile(stage.at_the_card(), GOOD, "held")
    heading(lea, "Held, not taken yet")
    finn = stage.mate_at_pay_link()
    stage.sign_in(finn)
    at(paid_meanwhile(finn, FINNS, "share_paid"), "share_paid")
    finn.go_back()
    at(finn, "share_paid")
    for page in (lea, finn):
        expect(page.locator("#number")).to_have_count(0)


@pytest.mark.rule("sign_in.session")
def test_signing_out_also_signs_out_a_copy_of_the_browser(
    order: Order, open_page: Callable[..., Page], accessible: Callable[[Page], None]
) -> None:
    page, copy = open_page(), open_page()
    page.goto(order.url)
    sign_in(page, "07700 900508")
    heading(page, "Who’s in on this?")
    accessible(page)
    copy.context.add_cookies(page.context.cookies())  # type: ignore[arg-type]
    copy.goto(order.url)
    heading(copy, "Who’s in on this?")
    page.click("text=Not you?")
    heading(page, "Your mobile number")
    copy.reload()
    heading(copy, "Your mobile number")
    sign_in(page, "07700 900509")
    page.click(".all-mine")
    expect(page.locator("#leave")).to_have_text("Not you?")
    pay(page, GOOD)
    heading(page, "Held, not taken yet")
    accessible(page)
    page.click("text=Sign out")
    heading(page, "Held, not taken yet")
    expect(page.locator("#leave")).to_have_count(0)
