"""The layout of payers' pages: language buttons in rows, fields below their checkbox, and text near its button."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.brand import states
from tests.browser.gallery import Stage, offers
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
LINES = """() => Object.values(Object.groupBy(document.querySelectorAll(".foot-language button"),
  it => it.getBoundingClientRect().y)).map(line => line.length)"""
SIZE = "it => parseFloat(getComputedStyle(it).fontSize)"


def place(found: Locator) -> tuple[float, float, float]:
    """Return the left, top and bottom edge of an element."""
    box = found.bounding_box()
    assert box
    return box["x"], box["y"], box["y"] + box["height"]


@pytest.mark.parametrize("locale", ["en-GB", "de-DE", "nl-NL"])
def test_the_language_switcher_leaves_no_single_language_on_a_line(
    service: Service, open_page: Callable[..., Page], locale: str
) -> None:
    stage = Stage(service, lambda **options: open_page(locale=locale, **options))
    page = stage.come(stage.order())
    page.set_viewport_size({"width": 320, "height": 812})
    assert page.evaluate(LINES) == [3, 2]
    page.set_viewport_size({"width": 1280, "height": 812})
    assert page.evaluate(LINES) == [5]


@pytest.mark.parametrize("scripts", [True, False])
def test_fields_that_belong_to_the_opt_in_box_are_below_its_label(
    service: Service, open_page: Callable[..., Page], scripts: bool
) -> None:
    stage = Stage(service, lambda **options: open_page(java_script_enabled=scripts, **options))
    page = offers(states.brand(stage, "A", "white"))
    if scripts:
        expect(page.locator("#email")).to_be_hidden()
        page.check("#opt-in")
    begins, _, ends = place(page.locator("label[for=opt-in]"))
    for within in ("#email", "#name", ".opt-in .button-main"):
        its, top, ends_here = place(page.locator(within))
        assert its == begins and top > ends
        ends = ends_here
    shop = page.locator("#shop")
    expect(shop).to_have_attribute("href", "https://acme.example/")
    assert place(shop)[1] > ends


@pytest.mark.parametrize("width", [320, 375, 1280])
def test_each_text_on_the_front_page_is_nearest_to_its_own_button(
    service: Service, open_page: Callable[..., Page], width: int
) -> None:
    page = open_page()
    page.set_viewport_size({"width": width, "height": 812})
    page.goto(service.base_url)
    ends = 0.0
    for row in page.locator(".places-to-go li").all():
        left, top, bottom = place(row.locator("a"))
        x, upper, lower = place(row.locator("p"))
        if width < 480:
            assert x == left and 0 < 2 * (upper - bottom) < 24 and (not ends or top - ends == 24)
        else:
            assert x > left and top <= upper and lower <= bottom, "beside it"
        ends = lower
    headings = [page.locator(one).evaluate(SIZE) for one in ("h1", ".front-bears")]
    assert headings[0] > 1.2 * headings[1], "the page's own is the larger one"
