"""With the keyboard only, a mate takes and pays a share, and the lead asks again and covers a share."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.gallery import FINNS, Stage, numbers
from tests.browser.test_buying import heading
from tests.browser.test_everybody import go_to
from tests.browser.together.pledge_states import collecting, pledged
from tests.browser.together.test_bill import bill_of, link_of, say_no

pytestmark = [pytest.mark.journey, pytest.mark.long]


def press(page: Page, selector: str) -> None:
    """Move to an element with Tab, and press Enter."""
    go_to(page, selector)
    page.keyboard.press("Enter")


def test_a_mate_takes_a_share_and_pays_it(stage: Stage) -> None:
    lea = bill_of(stage, stage.order())
    finn = stage.open_page()
    finn.goto(lea.get_attribute(".one-link", "data-url") or "")
    press(finn, "button.free")
    heading(finn, "Your share")
    go_to(finn, "#phone")
    finn.keyboard.type(f"07400 {next(numbers)}")
    finn.keyboard.press("Enter")
    heading(finn, "Enter the 6-digit code")
    finn.keyboard.type(finn.inner_text(".notice code"))  # the field has the focus
    finn.keyboard.press("Enter")
    finn.wait_for_selector("#number")
    go_to(finn, "#number")
    finn.keyboard.type(FINNS)
    finn.keyboard.press("Tab")
    finn.keyboard.type("0849")
    finn.keyboard.press("Tab")
    finn.keyboard.type("123")
    press(finn, "#pay")
    heading(finn, re.compile("You paid £"))
    stage.service.prove_ledger()


@pytest.mark.rule("pledge.withdraw")
@pytest.mark.parametrize(("way", "other"), [("withdraw", "another-card"), ("another-card", "withdraw")])
def test_the_question_replaces_the_buttons_and_keeps_their_places(stage: Stage, way: str, other: str) -> None:
    finn = pledged(stage, collecting(stage))
    asking, place = finn.locator(f"#{way}"), finn.locator(f"#{other}").bounding_box()
    asked_at = asking.bounding_box()
    asking.click()
    expect(finn.locator(".withdraw .further")).to_be_hidden()
    not_now, yes = asking.bounding_box(), finn.locator(f"#yes-{way}").bounding_box()
    question = finn.locator(f"#{way}-details p").bounding_box()
    assert asked_at and place and not_now and yes and question
    for before, after in ((asked_at, not_now), (place, yes)):
        assert dict(after) == pytest.approx(dict(before), abs=1), "no button grows or moves"
    assert question["y"] + question["height"] <= yes["y"], "the question is above both buttons"


@pytest.mark.rule("pledge.withdraw")
def test_a_mate_who_is_in_uses_another_card(stage: Stage) -> None:
    finn = pledged(stage, collecting(stage))
    press(finn, "#withdraw")
    expect(finn.locator("#another-card")).to_be_hidden()
    press(finn, "#withdraw")
    press(finn, "#another-card")
    expect(finn.locator("#withdraw")).to_be_hidden()
    finn.keyboard.press("Tab")
    finn.wait_for_timeout(5_000)  # long enough for two updates of the page
    expect(finn.locator("#yes-another-card")).to_be_focused()
    heading(finn, "You’re in for £4.00")
    finn.keyboard.press("Enter")
    finn.wait_for_selector("#number")
    expect(finn.locator(".notice.tone-move")).to_contain_text("The hold of £4.00 on your card is released.")


def test_the_lead_opens_a_row_asks_a_mate_again_and_keeps_a_share(stage: Stage) -> None:
    lea = bill_of(stage, stage.order(), mates=1)
    finns = link_of(lea, "Finn")
    say_no(stage, finns)
    lea.reload()
    press(lea, ".group-more > summary")
    press(lea, "summary:has(use[href*='back'])")
    press(lea, ".group-tools .button-ink")
    expect(lea.locator(".group-line:has-text('Finn') .badge")).to_have_text("Not paid yet")
    assert link_of(lea, "Finn") != finns
    press(lea, "summary:has(use[href*='card'])")  # the row must stay open
    press(lea, ".group-tools .button-ink")
    expect(lea.locator(".group-line:has-text('Finn') .badge")).to_have_text("You cover it")


def test_the_lead_renames_a_mate_and_texts_them_their_link(stage: Stage) -> None:
    lea = bill_of(stage, stage.order(), mates=1)
    press(lea, ".group-more > summary")
    press(lea, "summary:has(use[href*='edit'])")
    go_to(lea, "[name=new_name]")
    lea.keyboard.press("Control+A")
    lea.keyboard.type("Finnegan")
    lea.keyboard.press("Enter")
    expect(lea.locator(".group-line").nth(1)).to_contain_text("Finnegan")
    press(lea, ".group-more > summary")
    press(lea, ".group-line summary:has(use[href*='chat'])")
    go_to(lea, "[name=phone]")
    lea.keyboard.type(f"07400 {next(numbers)}")
    lea.keyboard.press("Enter")
    expect(lea.locator(".group-line").nth(1)).to_contain_text("no text was sent to")
