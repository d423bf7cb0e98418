"""The page of a lead who waits for pledges, on a phone: the link to send is in view above the main button."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.gallery import Stage
from tests.browser.together import pledge_states
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]


@pytest.mark.rule("pledge.split_changes")
@pytest.mark.parametrize("state", [pledge_states.collecting, pledge_states.changes_split])
def test_the_button_of_the_link_is_above_the_dock(
    service: Service, open_page: Callable[..., Page], state: Callable[[Stage], Page]
) -> None:
    lead = state(Stage(service, lambda **options: open_page(locale="en-GB", **options)))
    lead.set_viewport_size({"width": 375, "height": 812})
    lead.evaluate("scrollTo(0, 0)")
    button = lead.locator(".one-link .button-main:visible").bounding_box()
    dock = lead.locator("#dock").bounding_box()
    assert button and dock and button["y"] + button["height"] <= dock["y"]


@pytest.mark.rule("pledge.page")
def test_an_open_line_stays_open_during_the_updates(service: Service, open_page: Callable[..., Page]) -> None:
    lead = pledge_states.collecting(Stage(service, lambda **options: open_page(locale="en-GB", **options)))
    lead.click(".group-more > summary >> nth=0")
    lead.click("summary.group-tool:has-text('Rename')")
    lead.fill("#name-2", "Fi")
    with lead.expect_response("**/pay?**collecting=1") as update:
        lead.wait_for_timeout(2_500)
    assert update.value.ok
    lead.wait_for_timeout(300)
    expect(lead.locator("#name-2")).to_have_value("Fi")
    expect(lead.locator(".group-tools [data-copy]").first).to_be_visible()
    lead.locator("#name-2").press("Enter")
    expect(lead.locator(".group-lines .bill-name >> nth=1")).to_have_text("Fi")
    lead.wait_for_timeout(2_500)
    lead.click(".group-more > summary >> nth=0")
    expect(lead.locator(".group-tools [data-copy]").first).to_be_visible()
    lead.click("summary.group-tool:has-text('Rename')")
    lead.click("[data-close] >> nth=0")
    expect(lead.locator("#name-2")).to_be_hidden()
