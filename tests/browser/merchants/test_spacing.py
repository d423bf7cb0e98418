"""The distances between elements on the portal's pages, and the pages with letters of twice the size."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from playwright.sync_api import Page

from tests.browser.access.checks import CUT
from tests.browser.desk import PAGES, Desk

pytestmark = [pytest.mark.journey, pytest.mark.long]
BOXES = """all => all.filter(it => it.checkVisibility()).map(it => it.getBoundingClientRect())
  .map(box => [box.left, box.top, box.right, box.bottom])"""
BELOW = """all => all.filter(it => it.checkVisibility())
  .map(it => it.getBoundingClientRect().top - it.previousElementSibling.getBoundingClientRect().bottom)"""
CONTROLS = ".filters :is(input:not([type=hidden]), select, button)"
Box = tuple[float, float, float, float]


@pytest.fixture
def page(desk: Desk, open_page: Callable[..., Page]) -> Page:
    return desk.sign_in(open_page())


def test_a_button_of_your_security_is_twelve_pixels_below_its_sentence(desk: Desk, page: Page) -> None:
    desk.at(page, "/portal/security")
    for width in (375, 1280):
        page.set_viewport_size({"width": width, "height": 812})
        gaps = page.locator(".security .actions").evaluate_all(BELOW)
        assert len(gaps) >= 2
        assert [round(gap) for gap in gaps] == [12] * len(gaps), width


@pytest.mark.parametrize("width", [320, 375, 1280])
def test_chips_are_apart_from_each_other_and_from_what_they_filter(
    desk: Desk, page: Page, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 812})
    desk.at(page, "/portal/checkouts?state=captured&since=2026-01-01&at_least=20")
    chips: list[Box] = page.locator(".chip").evaluate_all(BOXES)
    assert len(chips) == 3
    for one, other in pairwise(chips):
        assert other[0] - one[2] >= 8 or other[1] - one[3] >= 8, (one, other)
    (table,) = page.locator(".table-checkouts").evaluate_all(BOXES)
    assert table[1] - max(chip[3] for chip in chips) >= 12


@pytest.mark.parametrize(
    ("path", "tabs"), [("/portal/webhooks", ".tabs > a"), ("/api/docs", ".tabs > label")]
)
def test_the_languages_of_code_are_on_one_line_of_a_phone(
    desk: Desk, page: Page, path: str, tabs: str
) -> None:
    page.set_viewport_size({"width": 375, "height": 812})
    desk.at(page, path)
    boxes: list[Box] = page.locator(".tabs").first.locator(tabs.removeprefix(".tabs > ")).evaluate_all(BOXES)
    assert len(boxes) >= 6 and len({round(box[1]) for box in boxes}) == 1


@pytest.mark.parametrize("path", ["checkouts", "refunds", "deliveries", "requests", "audit"])
def test_filters_are_on_one_line_on_a_desktop(desk: Desk, page: Page, path: str) -> None:
    """Filters in the same line are aligned at the bottom.

    If they do not fit into one line, there are several lines. There is a gap between the filters, and between
    the filters and the edge of the page.
    """
    page.set_viewport_size({"width": 1280, "height": 812})
    desk.at(page, f"/portal/{path}")
    boxes: list[Box] = page.locator(CONTROLS).evaluate_all(BOXES)
    assert len(boxes) >= 3
    for one, other in pairwise(boxes):
        is_beside = round(one[3]) == round(other[3]) and other[0] - one[2] >= 8
        assert is_beside or other[1] - one[3] >= 12, (one, other)
    assert max(box[2] for box in boxes) <= 1280 - 16


@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith("63 menu, open")])
def test_letters_twice_as_large_fit_a_phone(desk: Desk, open_page: Callable[..., Page], name: str) -> None:
    page = PAGES[name](desk, desk.sign_in(open_page(may_fail=True)))
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    # The table of roles is removed, because it is allowed to scroll.
    page.evaluate("document.querySelector('.table-roles')?.remove()")
    page.wait_for_timeout(50)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert page.evaluate(CUT) == []
