"""The portal's menu on a phone and as a page. One button opens and closes the menu, and stays in the same place."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.desk import Desk

pytestmark = [pytest.mark.journey, pytest.mark.long]
FILTERED = "/portal/checkouts?q=A-1&state=captured"


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("width", [320, 375])
def test_the_menu_opens_and_closes_with_a_button_in_the_same_place(
    desk: Desk, owner: Callable[..., Page], width: int, script: bool
) -> None:
    page = desk.at(owner(java_script_enabled=script), FILTERED)
    page.set_viewport_size({"width": width, "height": 812})
    way = page.locator(".side-menu")
    before = way.bounding_box()
    way.click()
    expect(way).to_have_text("Close" if script else "Back")
    assert way.bounding_box() == before
    expect(page.locator("nav:visible [aria-current]")).to_have_text("Checkouts")
    way.click()
    expect(way).to_have_text("Menu")
    assert (page.url, way.bounding_box()) == (desk.service.base_url + FILTERED, before)


def test_the_menu_page_has_short_lines_and_no_side_menu(desk: Desk, owner: Callable[..., Page]) -> None:
    page = desk.at(owner(), "/portal/menu")
    expect(page.locator(".side-menu")).to_have_text("Back")
    expect(page.locator(".side-nav")).to_be_hidden()
    page.set_viewport_size({"width": 1280, "height": 812})
    widths = page.evaluate("[...document.querySelectorAll('.menu-page li')].map(line => line.clientWidth)")
    assert len(widths) > 10 and max(widths) <= 320
