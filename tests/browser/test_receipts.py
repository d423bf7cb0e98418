"""Receipts, refunds and the opt-in box next to them, as a payer sees them on a phone."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.gallery import Stage, at
from tests.browser.test_buying import Visit
from tests.journeys.service import Service

pytestmark = pytest.mark.journey
TOP = "selector => document.querySelector(selector).getBoundingClientRect().top"
TONES = """["--done", "--still-tint", "--m1"]
  .map(it => getComputedStyle(document.documentElement).getPropertyValue(it)).join(" ")"""


@pytest.fixture
def stage(service: Service, open_page: Callable[..., Page]) -> Stage:
    """Return a stage whose payers are in the same time zone as their tickets, Europe/London."""
    return Stage(service, lambda **options: open_page(**{"timezone_id": "Europe/London"} | options))


@pytest.mark.long
def test_a_receipt_is_between_the_return_link_and_the_opt_in_box(stage: Stage, accessible: Visit) -> None:
    page = stage.confirmed()
    tops = [page.evaluate(TOP, it) for it in ("#return", ".receipt", ".offers")]
    assert tops == sorted(tops)
    expect(page.locator(".receipt")).to_contain_text("London time (GMT)")
    expect(page.locator(".receipt .total")).to_contain_text("£95.50")
    accessible(page)
    expect(page.locator("#email")).to_be_hidden()
    page.check("#opt-in")
    expect(page.locator("#email")).to_be_visible()
    accessible(page)


@pytest.mark.long
def test_nothing_moves_when_the_payer_chooses_to_stay(stage: Stage) -> None:
    order = stage.order()
    page = stage.held(order)
    stage.merchant.capture(order.checkout_uuid)
    at(page, "confirmed")
    page.wait_for_selector("#stay:visible")
    before = page.evaluate(TOP, ".receipt")
    page.click("#stay")
    expect(page.locator("#stay")).to_be_hidden()
    expect(page.locator("[data-auto-return]")).to_have_text("You can close this page.")
    assert page.evaluate(TOP, ".receipt") == before
    page.check("#opt-in")
    page.fill("#email", "lea@mail.example")
    page.click(".offers button")
    expect(page.locator(".offers [role=status]")).to_be_visible()
    # A new button would appear within a second and disappear after five seconds, so look in between.
    page.wait_for_timeout(1500)
    assert not page.is_visible("#stay")


def test_the_opt_in_form_is_open_without_javascript(stage: Stage) -> None:
    without = Stage(stage.service, lambda **options: stage.open_page(java_script_enabled=False, **options))
    order = without.order()
    page = without.after_card(order)
    without.merchant.capture(order.checkout_uuid)
    page.goto(order.url)
    expect(page.locator("#email")).to_be_visible()


@pytest.mark.parametrize(("zone", "shown"), [("Europe/London", ""), ("America/New_York", "GMT|BST")])
@pytest.mark.long
def test_a_time_names_its_zone_for_a_payer_in_another_zone(
    service: Service, open_page: Callable[..., Page], zone: str, shown: str
) -> None:
    stage = Stage(service, lambda **options: open_page(timezone_id=zone, **options))
    page = stage.held()
    said = page.inner_text(".aside-note time")
    assert re.fullmatch(rf"\d\d:\d\d:\d\d\s?({shown})", said)


@pytest.mark.long
def test_a_mates_receipt_prints(stage: Stage) -> None:
    page = at(stage.mate_pays(stage.mate_at_pay_link()), "share_paid")
    page.emulate_media(media="print")
    receipt = page.locator(".receipt")
    for kept in (
        "Acme Tickets",
        "Your share of Standing ticket, Blue Room",
        "£4.00",
        "Mastercard ending 4444",
    ):
        expect(receipt).to_contain_text(kept)
    expect(page.locator("#print")).to_be_hidden()


@pytest.mark.long
def test_the_amount_refunded_to_this_card_comes_first(stage: Stage, accessible: Visit) -> None:
    order = stage.order()
    lea = stage.confirmed(order, mates=2)
    link = lea.get_attribute(".group-line [data-url]", "data-url") or ""
    finn = stage.open_page()
    finn.goto(link)
    at(stage.mate_pays(finn), "share_paid")
    stage.merchant.refund(order.checkout_uuid)
    stage.merchant.awaited(order.checkout_uuid, "refunded", within=15)
    lea.goto(order.url)
    at(lea, "refunded")
    expect(lea.locator("h1")).to_have_text(re.compile(r"^£9[15]\.50 goes back to your card$"))
    expect(lea.locator(".refund .total")).to_contain_text("£0.00")
    expect(lea.locator(".refund")).to_contain_text("Finn’s card gets its £4.00 back too.")
    accessible(lea)
    finn.goto(link)
    at(finn, "refunded")
    expect(finn.locator("h1")).to_have_text("£4.00 goes back to your card")
    accessible(finn)


@pytest.mark.long
def test_dark_mode_prints_in_light_colours(stage: Stage) -> None:
    """Even if the screen uses the dark colours, a page is printed in the light colours.

    In the dark colours, a badge would be printed as a black bar.
    """
    page = stage.confirmed(mates=2)
    page.click(".group-more > summary >> nth=0")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(TONES) == "#84d6a4 #27302b #5a3413"
    page.emulate_media(color_scheme="dark", media="print")
    assert page.evaluate(TONES) == "#14613a #dfe5dc #ffd7b3"
    expect(page.locator("#group-until")).to_be_hidden()
    opened = page.locator(".group-line:has(> [open])")
    expect(opened).to_have_css("background-color", "rgb(255, 255, 255)")
    expect(opened).to_have_css("box-shadow", "none")


@pytest.mark.long
def test_a_lead_prints_the_receipt_without_the_tools_of_the_bill(stage: Stage) -> None:
    page = stage.confirmed(mates=2)
    page.emulate_media(media="print")
    receipt = page.locator(".receipt >> visible=true")
    for kept in ("Acme Tickets", "£95.50", "Visa ending 4242", "London time (GMT)"):
        expect(receipt).to_contain_text(kept)
    expect(page.locator(".group-line .amount").first).to_be_visible()
    for left in ("#print", "[data-print]", ".foot", ".group-word", ".group-tools", ".one-link", ".offers"):
        for found in page.locator(left).all():
            expect(found).to_be_hidden()
