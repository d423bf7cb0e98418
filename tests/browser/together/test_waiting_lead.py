"""The page of a lead who waits for pledges, on a phone: the link to send is in view above the main button."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

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
