"""The group's bill on Lea's phone: what mates do is seen at once, and nothing moves under her finger."""

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.gallery import Stage
from tests.browser.order import Order
from tests.browser.test_buying import Visit
from tests.journeys.service import Service

pytestmark = pytest.mark.journey
SEEN_WITHIN = 2.5  # seconds: two, and what a busy machine adds


@pytest.fixture
def stage(service: Service, open_page: Callable[..., Page]) -> Stage:
    return Stage(service, open_page)


def link_of(lea: Page, name: str) -> str:
    return lea.locator(f".group-line:has-text('{name}') [data-url]").get_attribute("data-url") or ""


def say_no(stage: Stage, link: str) -> None:
    mate = stage.open_page()
    mate.goto(link)
    mate.click("text=I’m not paying this")
    expect(mate.locator("h1")).to_have_text("You said no")
    mate.context.close()


def test_what_a_mate_does_is_seen_within_two_seconds(stage: Stage, accessible: Visit) -> None:
    lea = stage.confirmed(stage.order(), mates=2)
    expect(lea.locator("h1")).to_have_text("You bear £95.50 now")
    accessible(lea)
    finns = link_of(lea, "Finn")
    lea.evaluate("scrollTo(0, 200)")
    say_no(stage, finns)
    began = time.monotonic()
    expect(lea.locator(".group-state .hint")).to_have_text("Finn said no.")
    assert time.monotonic() - began < SEEN_WITHIN
    expect(lea.locator("#spoken")).to_have_text("Finn said no. You bear £95.50 now")
    expect(lea.locator(".group-sums dd").first).to_have_text("£91.50")
    assert lea.locator("#said-no").count() == 0, "nothing moves while she looks"
    lea.reload()
    lea.click("[data-show=again]")
    accessible(lea)
    assert lea.evaluate("document.activeElement.textContent") == "Not now"


def test_of_many_is_one_line_that_opens_downwards_and_takes_nothing_away(stage: Stage) -> None:
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
def test_the_last_day_is_offered_at_the_next_load(stage: Stage, accessible: Visit) -> None:
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
def test_nothing_changes_under_her_finger(stage: Stage, accessible: Visit) -> None:
    lea = stage.confirmed(stage.order(), mates=2)
    priyas = link_of(lea, "Priya")
    more = lea.locator(".group-line:has-text('Finn') > details > summary")
    more.scroll_into_view_if_needed()
    before = more.bounding_box()
    more.click()
    assert more.bounding_box() == before, "what opened it stays where it is"
    accessible(lea)
    lea.click("text=Keep it: I pay Finn’s share")
    say_no(stage, priyas)
    lea.wait_for_timeout(3500)
    expect(lea.locator(".group-line:has-text('Priya')")).to_contain_text("Not paid yet")
    lea.click("details[open] details[open] [data-close]")
    assert lea.evaluate("document.activeElement.tagName") == "SUMMARY"
    lea.keyboard.press("Escape")
    expect(lea.locator(".group-line:has-text('Priya')")).to_contain_text("Said no")


@pytest.mark.long
def test_a_double_tap_on_a_question_changes_nothing(stage: Stage) -> None:
    order = stage.order()
    lea = stage.confirmed(order, mates=2)
    say_no(stage, link_of(lea, "Finn"))
    lea.reload()
    for offer in ("again", "keep"):
        box = lea.locator(f"[data-show={offer}]").bounding_box()
        assert box
        lea.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(lea.locator("#said-no")).to_have_attribute("data-face", "say")
    expect(lea.locator(".group-line:has-text('Finn')")).to_contain_text("Said no")


@pytest.mark.parametrize("script", [True, pytest.param(False, marks=pytest.mark.long)])
def test_she_asks_again_and_keeps(service: Service, open_page: Callable[..., Page], script: bool) -> None:
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
    line.locator("summary").first.click()
    line.locator("text=Keep it: I pay").click()
    line.locator("text=Yes, I pay it").click()
    expect(line).to_contain_text("Stays with you")
    expect(lea.locator(".group-sums dd").first).to_have_text("£91.50")


def bill_of(stage: Stage, order: Order) -> Page:
    """Lea's page of a paid order that two mates share; without script she loads it anew herself."""
    lea = stage.held(order, mates=2)
    stage.merchant.capture(order.checkout_uuid)
    lea.goto(order.url)
    expect(lea.locator(".group-bears")).to_be_visible()
    return lea
