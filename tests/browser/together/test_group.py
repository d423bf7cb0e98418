"""The group link: Lea shares it, Finn takes and pays a share through it, and Zoe is a moment too late."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser import gallery
from tests.browser.gallery import FINNS, Stage
from tests.browser.test_buying import WITH_AND_WITHOUT, Visit, heading, nothing, pay, sign_in
from tests.journeys.service import Service

pytestmark = pytest.mark.journey


@pytest.fixture
def lea(service: Service, open_page: Callable[..., Page]) -> Page:
    """Return the lead's page of a captured order of £95.50 with three mates. One share has no name."""
    stage = Stage(service, open_page)
    order = stage.order()
    page = stage.come(order)
    sign_in(page)
    page.check("#split-own", force=True)
    page.fill("#your-name", "Lea")
    for position, name in enumerate(("Finn", "نور", ""), start=2):
        if not page.locator(f"#name-{position}").is_visible():
            page.click("[data-add]")
        page.fill(f"#name-{position}", name)
        page.fill(f"#amount-{position}", "23.87")
    page.click("#continue")
    page.wait_for_selector("#number")
    gallery.give_card(page, gallery.GOOD)
    gallery.at(page, "held")
    stage.merchant.capture(order.checkout_uuid)
    return gallery.at(page, "confirmed")


def link_of(lea: Page) -> str:
    return lea.locator(".one-link").get_attribute("data-url") or ""


@pytest.mark.long
def test_an_open_page_shows_the_shares_that_others_take(lea: Page, open_page: Callable[..., Page]) -> None:
    link = link_of(lea)
    finn, zoe = open_page(), open_page()
    zoe.goto(link)
    finn.goto(link)
    finn.click("button.free:has-text('Finn')")
    heading(finn, "Your share")
    expect(zoe.locator("button.free:has-text('Finn')")).to_have_count(0, timeout=15_000)
    finn.click("text=Take another share")
    expect(zoe.locator("button.free:has-text('Finn')")).to_be_visible(timeout=15_000)


@pytest.mark.rule("group.taken")
@pytest.mark.parametrize("script", WITH_AND_WITHOUT)
def test_a_share_is_taken_and_paid_with_the_group_link(
    lea: Page, service: Service, open_page: Callable[..., Page], accessible: Visit, script: bool
) -> None:
    look = accessible if script else nothing
    look(lea)
    link = link_of(lea)
    finn, zoe = (open_page(may_fail=True, java_script_enabled=script) for _ in range(2))
    finn.goto(link)
    zoe.goto(link)
    zoe.click("summary.free")  # a page does not update itself while something on it is expanded
    heading(finn, "Lea paid. Which share is yours?")
    look(finn)
    finn.click("button.free:has-text('Finn')")
    heading(finn, "Your share")
    expect(finn.locator("main")).to_contain_text("Kept for you until")
    look(finn)

    zoe.click("button.free:has-text('Finn')")
    expect(zoe.locator(".notice")).to_contain_text("Finn’s share was just taken")
    zoe.click("summary.free:has-text('equal')")
    zoe.fill("input[name=name]", "Zoe")
    look(zoe)
    zoe.click("text=Take this share, £23.87")
    heading(zoe, "Your share")
    expect(zoe.locator("main")).to_contain_text("Zoe")

    sign_in(finn, look)
    pay(finn, FINNS, look)
    heading(finn, re.compile("You paid £"))
    finn.goto(link)
    heading(finn, re.compile("You paid £"))  # for a mate who paid, the group link opens the mate's own page
    zoe.goto(link)
    for words in ("Paid", "Zoe", "Taken"):
        expect(zoe.locator(".group-come")).to_contain_text(words)
    look(zoe)
    service.prove_ledger()


@pytest.mark.long
def test_the_group_qr_code_page_shows_who_has_taken_a_share(
    lea: Page, open_page: Callable[..., Page], accessible: Visit
) -> None:
    link = link_of(lea)
    lea.click(".one-link a")
    heading(lea, "Scan, take a share, pay")
    accessible(lea)
    for width, height in ((1280, 812), (320, 568), (390, 664), (375, 812)):
        lea.set_viewport_size({"width": width, "height": height})
        close = lea.locator(".qr-close").bounding_box()
        assert close and close["y"] + close["height"] <= height, "it is there without scrolling"
        code = lea.locator(".qr-table").bounding_box()
        assert code and code["y"] + code["height"] <= close["y"], "nothing lies over it"
        assert code["width"] >= 144, "it can be scanned across a table"
        person = lea.locator(".group-who strong").first.bounding_box()
        assert person and person["y"] + person["height"] <= close["y"], "who has come is seen, too"
    column = lea.locator("h1").bounding_box()
    assert code and column and code["width"] == column["width"] == code["height"]
    finn = open_page()
    finn.goto(link)
    finn.click("button.free:has-text('Finn')")
    expect(lea.locator("#group-who")).to_contain_text("Finn taken", timeout=4000)
    lea.click("text=Close")
    expect(lea.locator(".group-bears")).to_be_visible()


def test_the_lead_copies_the_visible_text(lea: Page) -> None:
    lea.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = lea.locator(".one-link [data-copy]")
    assert lea.evaluate("!navigator.share")
    # If a browser has no share sheet, this is the main button.
    expect(button).to_have_class("button button-main")
    button.scroll_into_view_if_needed()
    before = button.bounding_box()
    button.click()
    expect(lea.locator("#spoken")).to_have_text("Copied")
    copied = lea.evaluate("navigator.clipboard.readText()")
    shown = lea.locator(".one-link-box strong").inner_text()
    assert lea.locator(".one-link-box .together").evaluate("it => it.getClientRects().length") == 1
    assert copied == f"{shown}\n{link_of(lea)}" and "£23.87 each" in shown
    assert button.bounding_box() == before and button.inner_text().strip() == "Copy the link"


SHEET = """
window.shared = [];
navigator.share = what => {
  window.shared.push(what);
  return Promise.reject(new DOMException("Share canceled", "AbortError"));
};
"""


@pytest.mark.long
def test_the_share_sheet_gets_the_visible_text_and_can_be_closed(lea: Page) -> None:
    """If Lea closes the share sheet, neither the page nor the console shows an error (see `open_page`)."""
    lea.add_init_script(SHEET)
    lea.reload()
    button = lea.locator(".one-link [data-share]")
    expect(button).to_be_visible()
    # The main button opens the share sheet.
    expect(lea.locator(".one-link [data-copy]")).to_have_class("button")
    button.click()
    shown = lea.locator(".one-link-box strong").inner_text()
    assert "£23.87 each" in shown
    assert lea.evaluate("window.shared") == [{"text": shown, "url": link_of(lea)}]
    expect(lea.locator("#spoken")).to_have_text("")
    button.click()
    assert lea.evaluate("window.shared.length") == 2, "it may be opened again"
