"""The group's bill on Lea's phone. It shows each action of a mate soon, and no control moves while she taps."""

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.gallery import GOOD, Stage, at, give_card
from tests.browser.order import Order
from tests.browser.test_buying import Visit
from tests.journeys.service import Service

pytestmark = pytest.mark.journey
SEEN_WITHIN = 2.5  # seconds; the limit is two, and a busy machine needs more
EVERY = 1_500  # milliseconds between two requests from an open page
HIDE = """isHidden => {
  Object.defineProperty(document, "hidden", {value: isHidden, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""
CHANGED_TOGETHER = """() => [
  [...document.querySelectorAll(".group-sums dd")].map(sum => sum.textContent),
  [...document.querySelectorAll(".group-bar > svg")].map(part => part.classList[0]),
  document.querySelectorAll(".group-line")[1].className.includes("look-paid"),
]"""


def link_of(lea: Page, name: str) -> str:
    return lea.locator(f".group-line:has-text('{name}') [data-url]").get_attribute("data-url") or ""


def say_no(stage: Stage, link: str) -> None:
    mate = stage.open_page()
    mate.goto(link)
    mate.click("text=I’m not paying this")
    expect(mate.locator("h1")).to_have_text("You said no")
    mate.context.close()


@pytest.mark.long
def test_a_mates_action_is_shown_within_two_seconds(stage: Stage, accessible: Visit) -> None:
    lea = stage.confirmed(stage.order(), mates=2)
    expect(lea.locator("h1")).to_have_text("You’re covering £95.50 for now")
    accessible(lea)
    finns = link_of(lea, "Finn")
    lea.evaluate("scrollTo(0, 200)")
    say_no(stage, finns)
    began = time.monotonic()
    expect(lea.locator(".group-state .hint")).to_have_text("Finn said no.")
    assert time.monotonic() - began < SEEN_WITHIN
    expect(lea.locator("#spoken")).to_have_text("Finn said no. You’re covering £95.50 for now")
    expect(lea.locator(".group-sums dd").first).to_have_text("£91.50")
    assert lea.locator("#said-no").count() == 0, "nothing moves while she looks"
    lea.reload()
    lea.click("[data-show=again]")
    accessible(lea)
    assert lea.evaluate("document.activeElement.textContent") == "Not now"


@pytest.mark.rule("bill.live")
@pytest.mark.parametrize("is_older", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_mates_payment_is_shown_within_two_seconds(stage: Stage, is_older: bool) -> None:
    lea = stage.confirmed(stage.order(), mates=2)
    lea.evaluate("window.isTheSame = true")
    if is_older:
        lea.evaluate("delete Element.prototype.checkVisibility")  # as in Safari before 17.4
    bar = ["look-mine", "look-out", "look-out"]
    assert lea.evaluate(CHANGED_TOGETHER) == [["£87.50", "£8.00", "£0.00"], bar, False]
    finn = stage.open_page()
    finn.goto(link_of(lea, "Finn"))
    at(stage.mate_pays(finn), "share_paid")
    expect(lea.locator("h1")).to_have_text("You’re covering £91.50 for now", timeout=SEEN_WITHIN * 1000)
    bar = ["look-mine", "look-paid", "look-out"]
    assert lea.evaluate(CHANGED_TOGETHER) == [["£87.50", "£4.00", "£4.00"], bar, True]
    expect(lea.locator(".group-line:has-text('Finn') .badge")).to_have_text(
        re.compile("Paid|Back on your card")
    )
    expect(lea.locator("#spoken")).to_contain_text("Finn has paid £4.00.")
    assert lea.evaluate("window.isTheSame"), "nothing was loaded anew"


@pytest.mark.rule("bill.live", "split.free_units")
@pytest.mark.long
def test_units_that_a_mate_takes_are_shown_within_two_seconds(stage: Stage) -> None:
    order = stage.order()
    lea = stage.at_the_split(order)
    lea.check("#split-item")
    lea.fill("#your-name", "Lea")
    lea.locator("button[data-more]").first.click()
    lea.click("#continue")
    lea.wait_for_selector("#number")
    give_card(lea, GOOD)
    at(lea, "held")
    stage.merchant.capture(order.checkout_uuid)
    at(lea, "confirmed")
    expect(lea.locator(".group-line")).to_have_count(2)
    zoe = stage.open_page()
    zoe.goto(lea.get_attribute(".one-link", "data-url") or "")
    zoe.locator("button[data-more]").first.click()
    zoe.fill("#your-name", "Zoe")
    zoe.click("[data-take]")
    expect(lea.locator(".group-line:has-text('Zoe')")).to_be_visible(timeout=SEEN_WITHIN * 1000)
    expect(lea.locator(".group-line")).to_have_count(3)


@pytest.mark.rule("bill.live")
@pytest.mark.long
def test_the_page_reloads_if_an_update_cannot_be_applied(stage: Stage) -> None:
    lea = stage.confirmed(stage.order(), mates=2)
    finns = link_of(lea, "Finn")
    lea.evaluate("window.isTheSame = true")
    lea.evaluate("() => { Element.prototype.replaceWith = () => { throw new Error() } }")
    say_no(stage, finns)
    expect(lea.locator(".group-sums dd").first).to_have_text("£91.50")
    assert not lea.evaluate("window.isTheSame")


@pytest.mark.rule("bill.live")
@pytest.mark.long
def test_the_bill_sends_no_requests_while_hidden_or_once_it_is_final(stage: Stage) -> None:
    lea = stage.confirmed(stage.order(), mates=1)
    asked: list[str] = []
    lea.on("request", lambda request: asked.append(request.url) if "/pay/bill?" in request.url else None)
    finn = stage.open_page()
    finn.goto(link_of(lea, "Finn"))
    lea.wait_for_timeout(2 * EVERY)
    assert asked, "it asks while it is seen"
    lea.evaluate(HIDE, True)
    lea.wait_for_timeout(500)  # wait for the responses to earlier requests
    asked.clear()
    at(stage.mate_pays(finn), "share_paid")
    lea.wait_for_timeout(2 * EVERY)
    assert asked == [] and lea.inner_text("h1") == "You’re covering £95.50 for now"
    lea.evaluate(HIDE, False)
    expect(lea.locator("h1")).to_have_text(
        "You’re covering £91.50, your own share", timeout=SEEN_WITHIN * 1000
    )
    # When the share is reimbursed to her card, the bill cannot change any more, so the page stops updating.
    expect(lea.locator("#status")).not_to_have_attribute("data-live", "")
    lea.wait_for_timeout(500)
    asked.clear()
    lea.wait_for_timeout(2 * EVERY)
    assert asked == []


@pytest.mark.long
@pytest.mark.rule("share.pauses")
def test_a_dispute_removes_the_group_link_until_it_is_won(stage: Stage, accessible: Visit) -> None:
    order = stage.order()
    lea = stage.confirmed(order, mates=2)
    order.be_disputed()
    expect(lea.locator(".paused h2")).to_have_text("Paused for now")
    expect(lea.locator(".one-link")).to_have_count(0)
    expect(lea.locator("[data-url]")).to_have_count(0)
    accessible(lea)
    lea.set_viewport_size({"width": 320, "height": 812})
    assert lea.evaluate("document.documentElement.scrollWidth") <= 320
    order.decide_the_dispute(is_won=True)
    expect(lea.locator(".one-link")).to_be_visible()
    expect(lea.locator(".paused")).to_have_count(0)


@pytest.mark.long
def test_a_bill_of_many_mates_collapses_into_one_line_that_expands_downwards(stage: Stage) -> None:
    lea = stage.confirmed(stage.order(), mates=9)
    finns, fold = lea.locator(".group-line:has-text('Finn')"), lea.locator("#fold-out")
    expect(finns).to_be_hidden()
    expect(fold).to_contain_text("9 mates")
    place = "it => it.getBoundingClientRect().top + scrollY"
    before = fold.evaluate(place)
    fold.click()
    expect(finns).to_be_visible()
    assert fold.evaluate(place) == before, "what is tapped stays where it is"
    say_no(stage, link_of(lea, "Finn"))
    expect(fold).to_contain_text("8 mates")
    expect(finns.locator(".badge")).to_have_text("Said no")
    fold.click()
    expect(finns).to_be_visible()
    expect(lea.locator(".group-line:has-text('Priya')")).to_be_hidden()
    assert finns.evaluate("it => it.nextElementSibling.textContent").strip().startswith("P"), (
        "each keeps its place"
    )


@pytest.mark.rule("share.last_day")
@pytest.mark.long
def test_the_last_day_reminder_is_offered_after_a_reload_only(stage: Stage, accessible: Visit) -> None:
    order = stage.order()
    lea = stage.confirmed(order, mates=2)
    before = lea.inner_text("#group-until")
    for seconds in (10 * 86_400, 3 * 86_400 + 60):
        stage.merchant.advance(order.checkout_uuid, seconds)
    expect(lea.locator("#group-until")).not_to_have_text(before)
    assert lea.locator(".last-day").count() == 0, "nothing moves while she looks"
    lea.reload()
    expect(lea.locator(".last-day")).to_contain_text("£8.00 is not paid yet.")
    accessible(lea)


@pytest.mark.long
def test_updates_change_nothing_under_the_leads_finger(stage: Stage, accessible: Visit) -> None:
    lea = stage.confirmed(stage.order(), mates=2)
    priyas = link_of(lea, "Priya")
    more = lea.locator(".group-line:has-text('Finn') > details > summary")
    more.scroll_into_view_if_needed()
    before = more.bounding_box()
    more.click()
    assert more.bounding_box() == before, "what opened it stays where it is"
    accessible(lea)
    lea.click("text=Cover Finn’s share myself")
    close = lea.locator("details[open] details[open] [data-close]")
    top = close.evaluate("button => button.getBoundingClientRect().top")
    say_no(stage, priyas)
    expect(lea.locator(".group-line:has-text('Priya')")).to_contain_text(
        "Said no", timeout=SEEN_WITHIN * 1000
    )
    expect(lea.locator(".group-sums dd").first).to_have_text("£91.50")
    moved = close.evaluate("button => button.getBoundingClientRect().top") - top
    assert abs(moved) < 1, "the open question stays open, and where it was"
    close.click()
    assert lea.evaluate("document.activeElement.tagName") == "SUMMARY"


@pytest.mark.rule("bill.live")
@pytest.mark.long
def test_an_update_keeps_what_the_lead_has_typed_in_the_same_line(stage: Stage) -> None:
    lea = stage.confirmed(stage.order(), mates=2)
    finns = link_of(lea, "Finn")
    line = lea.locator(".group-line:has-text('Finn')")
    line.locator(".group-more > summary").click()
    line.locator("text=Rename").click()
    line.locator("[name=new_name]").fill("Finley")
    line.locator("[name=new_name]").blur()
    say_no(stage, finns)
    expect(line).to_contain_text("Said no", timeout=SEEN_WITHIN * 1000)
    assert line.locator(".group-more").get_attribute("open") is not None


@pytest.mark.long
def test_asking_again_shows_the_new_link(stage: Stage, accessible: Visit) -> None:
    lea = stage.confirmed(stage.order(), mates=2)
    say_no(stage, link_of(lea, "Finn"))
    lea.reload()
    lea.click("#said-no [data-show=again]")
    lea.click("#said-no >> text=Yes, ask again")
    expect(lea.locator(".group-line:has-text('Finn') [data-copy]")).to_be_visible()
    accessible(lea)


@pytest.mark.long
@pytest.mark.parametrize("name", ["Finn", "Priya"])
def test_opening_a_tool_does_not_move_its_button(stage: Stage, name: str) -> None:
    lea = stage.confirmed(stage.order(), mates=2)
    say_no(stage, link_of(lea, "Priya"))
    lea.reload()
    line = lea.locator(f".group-line:has-text('{name}')")
    line.locator(".group-more > summary").click()
    tools = line.locator("details details > summary").all()
    names = {"Finn": ("QR code", "Text it", "Rename", "Cover"), "Priya": ("Ask", "Rename", "Cover")}[name]
    assert [name for name, tool in zip(names, tools, strict=True) if name not in tool.inner_text()] == []
    head = (line.locator(".bill-line"), line.locator(".group-more > summary"))
    for tool in tools:
        tool.scroll_into_view_if_needed()
        before = [it.bounding_box() for it in (*head, tool)]
        tool.click()
        expect(tool.locator("xpath=..")).to_have_attribute("open", "")
        assert [it.bounding_box() for it in (*head, tool)] == before, tool.inner_text()
        lea.keyboard.press("Escape")
        expect(line.locator("details details[open]")).to_have_count(0)
        assert [it.bounding_box() for it in (*head, tool)] == before, tool.inner_text()


@pytest.mark.long
def test_a_section_that_closes_above_does_not_move_the_tapped_button(stage: Stage) -> None:
    lea = stage.confirmed(stage.order(), mates=2)
    finns, priyas = (lea.locator(f".group-line:has-text('{name}') > details") for name in ("Finn", "Priya"))
    finns.locator("> summary").click()
    for tapped in (*finns.locator("details > summary").all(), priyas.locator("> summary")):
        tapped.scroll_into_view_if_needed()
        before = tapped.evaluate("it => it.getBoundingClientRect().top")
        tapped.click()
        lea.evaluate("new Promise(then => requestAnimationFrame(() => requestAnimationFrame(then)))")
        after = tapped.evaluate("it => it.getBoundingClientRect().top")
        assert abs(after - before) < 1, tapped.inner_text()
    expect(lea.locator(".group-more[open]")).to_have_count(1)


@pytest.mark.long
def test_a_double_tap_on_a_question_changes_nothing(stage: Stage) -> None:
    order = stage.order()
    lea = stage.confirmed(order, mates=2)
    say_no(stage, link_of(lea, "Finn"))
    lea.reload()
    block = lea.locator("#said-no")
    height = block.bounding_box()
    for offer in ("again", "keep"):
        box = lea.locator(f"[data-show={offer}]").bounding_box()
        assert box
        lea.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        not_now = lea.locator("[data-show=say] >> visible=true")
        assert not_now.bounding_box() == box, "it lies where the finger was"
        assert block.bounding_box() == height
        not_now.click()
        lea.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(lea.locator("#said-no")).to_have_attribute("data-face", "say")
    expect(lea.locator(".group-line:has-text('Finn')")).to_contain_text("Said no")


@pytest.mark.parametrize("script", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_lead_asks_a_mate_again_and_keeps_a_share(
    service: Service, open_page: Callable[..., Page], script: bool
) -> None:
    stage = Stage(service, lambda **options: open_page(java_script_enabled=script, **options))
    lea = bill_of(stage, stage.order())
    finns = link_of(lea, "Finn")
    say_no(stage, finns)
    lea.reload()
    lea.click("text=Ask again >> visible=true")
    lea.click("text=Yes, ask again >> visible=true")
    line = lea.locator(".group-line:has-text('Finn')")
    expect(line).to_contain_text("Not paid yet")
    assert link_of(lea, "Finn") != finns
    line.locator("text=Cover Finn’s share myself").click()
    line.locator("text=Yes, I’ll cover it").click()
    expect(line).to_contain_text("You cover it")
    expect(lea.locator(".group-sums dd").first).to_have_text("£91.50")


@pytest.mark.long
@pytest.mark.rule("share.bends")
def test_the_lead_renames_a_mate_and_a_mate_withdraws_a_refusal(stage: Stage, accessible: Visit) -> None:
    lea = bill_of(stage, stage.order())
    line = lea.locator(".group-line:has-text('Finn')")
    line.locator("summary").first.click()
    line.locator("summary:has-text('Rename')").click()
    line.locator("input[name=new_name]").fill("Fionn")
    accessible(lea)
    line.locator("text=Save the name").click()
    expect(lea.locator(".group-line .bill-name")).to_have_text(["Lea", "Fionn", "Priya"])
    finn = stage.open_page()
    finn.goto(link_of(lea, "Fionn"))
    finn.click("text=I’m not paying this")
    expect(finn.locator("h1")).to_have_text("You said no")
    expect(lea.locator(".group-line:has-text('Fionn') .badge")).to_have_text("Said no")
    finn.click("text=I’ve changed my mind")
    expect(finn.locator("h1")).to_have_text("Lea is asking you for £4.00")
    expect(lea.locator(".group-line:has-text('Fionn') .badge")).to_have_text("Not paid yet")


def bill_of(stage: Stage, order: Order, mates: int = 2) -> Page:
    """Split, pay and capture an order. Return Lea's page with the bill.

    The page is reloaded, because it does not update itself without JavaScript.
    """
    lea = stage.held(order, mates=mates)
    stage.merchant.capture(order.checkout_uuid)
    lea.goto(order.url)
    expect(lea.locator(".group-bears")).to_be_visible()
    return lea
