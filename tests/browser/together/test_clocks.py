"""Times on the pages of a group: when the lead's sign-in ends, and the time zone of each time."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser import gallery
from tests.browser.gallery import Stage
from tests.browser.test_buying import Visit, heading
from tests.browser.together.test_bill import link_of, say_no
from tests.journeys.service import Service

pytestmark = pytest.mark.journey
PLACE = "it => it.getBoundingClientRect().top"
# Finds times of day in the main part of the page that need a time zone next to them, but have none. A time in
# the user's own zone needs none.
ZONELESS = r"""() => {
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const found = {read: 0, zoneless: []};
  for (let text; (text = texts.nextNode()); ) {
    if (!/\b\d\d:\d\d\b/.test(text.data) || !text.parentElement.checkVisibility()) continue;
    found.read += 1;
    const time = text.parentElement.closest("time[data-zone]");
    const isOwn = time && Number(time.dataset.zone) === -new Date(time.dateTime).getTimezoneOffset();
    const beside = time ?? text.parentElement.closest("dd, p") ?? text;
    const isNamed = /\d\s*(E[SD]T|GMT|BST)\b|New York time/.test(beside.innerText ?? beside.data);
    if (!isOwn && !isNamed) found.zoneless.push(text.parentElement.outerHTML);
  }
  return found;
}"""


def names_zones(page: Page) -> None:
    """Fail if the page shows no time of day, or a time whose zone is not clear to the user."""
    page.wait_for_load_state("load")
    found = page.evaluate(ZONELESS)
    assert found["read"] and found["zoneless"] == [], (page.url, found)


@pytest.mark.rule("sign_in.said")
@pytest.mark.long
def test_a_tap_keeps_the_bill_live_and_the_end_of_the_sign_in_is_shown_without_one(
    service: Service, open_page: Callable[..., Page], accessible: Visit
) -> None:
    stage = Stage(service, open_page)
    order = stage.order()
    lea = stage.confirmed(order, mates=2)
    lea.clock.install()
    lea.reload()
    priya = lea.locator(".group-line:has-text('Priya')")
    priya.scroll_into_view_if_needed()
    expect(lea.locator(".stay")).to_be_hidden()
    before = priya.evaluate(PLACE)
    order.sign_in_grows_older(lea, 14 * 60)
    lea.clock.fast_forward("14:00")
    expect(lea.locator(".stay")).to_contain_text("You are signed in until")
    assert priya.evaluate(PLACE) == before, "nothing moves under her finger"
    accessible(lea)
    lea.click("text=Stay signed in")
    expect(lea.locator(".stay")).to_be_hidden()
    order.sign_in_grows_older(lea, 10 * 60)
    lea.clock.fast_forward("10:00")
    say_no(stage, link_of(lea, "Finn"))
    expect(lea.locator(".group-line:has-text('Finn') .badge")).to_have_text("Said no")
    order.sign_in_grows_older(lea, 15 * 60 + 1)
    lea.clock.fast_forward("06:00")
    heading(lea, "See your bill")
    expect(lea.locator("[role=alert]")).to_contain_text("You are signed out")
    expect(lea.locator("main")).not_to_contain_text("Did you pay this?")
    accessible(lea)


@pytest.mark.long
def test_an_open_menu_stays_open_when_the_sign_in_ends(
    service: Service, open_page: Callable[..., Page]
) -> None:
    stage = Stage(service, open_page)
    order = stage.order()
    lea = stage.confirmed(order, mates=2)
    lea.clock.install()
    lea.reload()
    lea.click(".group-line:has-text('Finn') > details > summary")
    order.sign_in_grows_older(lea, 15 * 60 + 1)
    lea.clock.fast_forward("15:01")
    expect(lea.locator(".stay p")).to_have_text("You are signed out")
    expect(lea.locator(".group-line:has-text('Finn') > details")).to_have_attribute("open", "")
    lea.click(".stay >> text=Sign in again")
    heading(lea, "See your bill")


@pytest.mark.rule("sign_in.said")
@pytest.mark.long
def test_the_card_page_shows_when_the_sign_in_ends_and_a_new_code_restores_the_split(
    service: Service, open_page: Callable[..., Page], accessible: Visit
) -> None:
    stage = Stage(service, open_page)
    order = stage.order()
    number = f"07400 {next(gallery.numbers)}"
    lea = stage.come(order)
    sign_in(lea, number)
    gallery.split(lea, 2)
    lea.click("#continue")
    lea.clock.install()
    lea.wait_for_selector("#number")
    asked = lea.inner_text("#pay")
    lea.reload()
    order.sign_in_grows_older(lea, 15 * 60 + 1)
    lea.clock.fast_forward("15:01")
    expect(lea.locator(".stay p")).to_contain_text("You are signed out and have not been charged.")
    accessible(lea)
    gallery.give_card(lea, gallery.GOOD)
    expect(lea.locator("[role=alert]")).to_contain_text("You have not been charged, and your split is saved.")
    sign_in(lea, number)
    expect(lea.locator("#pay")).to_have_text(asked)
    expect(lea.locator("#number")).to_have_value("")
    gallery.give_card(lea, gallery.GOOD)
    gallery.at(lea, "held")
    stage.merchant.capture(order.checkout_uuid)
    expect(gallery.at(lea, "confirmed").locator(".group-line")).to_have_count(3)


def sign_in(page: Page, number: str) -> None:
    """Sign in with a phone number and the code that is sent to it."""
    page.fill("#phone", number)
    page.click("button.button-main")
    page.fill("#code", page.inner_text(".notice code"))
    page.click("button.button-main")


@pytest.mark.long
def test_a_ticket_to_new_york_that_is_bought_in_london_names_the_zone_of_each_time(
    service: Service, open_page: Callable[..., Page]
) -> None:
    stage = Stage(service, lambda **options: open_page(timezone_id="Europe/London", **options))
    show = {"event_start": "2026-12-12T19:30:00Z", "time_zone": "America/New_York"}
    items = gallery.bill()["items"]
    order = stage.order(items=[items[0] | {"custom_data": show}, *items[1:]])
    lea = stage.open_page()
    lea.clock.install()
    lea.goto(order.url)
    stage.ask_for_code(lea)
    heading(lea, "Enter the 6-digit code")
    names_zones(lea)
    lea.fill("#code", lea.inner_text(".notice code"))
    lea.click("button.button-main")
    heading(lea, "Who’s in on this?")
    ends_in(lea, "13:30")
    lea.click("text=Stay signed in")
    expect(lea.locator(".stay")).to_be_hidden()
    ends_in(lea, "13:30")
    gallery.split(lea, 2)
    lea.click("#continue")
    lea.wait_for_selector("#number")
    ends_in(lea, "13:30")
    gallery.give_card(lea, gallery.GOOD)
    gallery.at(lea, "held")
    names_zones(lea)
    stage.merchant.capture(order.checkout_uuid)
    gallery.at(lea, "confirmed")
    ends_in(lea, "13:30")
    finn, priya = stage.open_page(), stage.open_page()
    priya.goto(link_of(lea, "Priya"))
    names_zones(priya)
    group = lea.locator(".one-link").get_attribute("data-url") or ""
    finn.goto(group)
    names_zones(finn)
    finn.click("button.free:has-text('Finn')")
    for words in ("Your share", "Lea paid. Which share is yours?"):
        heading(finn, words)
        expect(finn.locator("main")).to_contain_text("Kept for you until")
        names_zones(finn)
        finn.goto(group)


def ends_in(page: Page, time: str) -> None:
    """Move the page's clock forward. Fail unless the page then says when the sign-in ends."""
    page.wait_for_load_state("load")  # now the script has started its timer
    page.clock.fast_forward(time)
    expect(page.locator(".stay")).to_be_visible()
    expect(page.locator(".stay")).to_contain_text("You are signed in until")
    names_zones(page)
