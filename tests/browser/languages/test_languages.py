"""The page in other languages: the longest words fit, and amounts have the format of each language."""

import html
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests import factories
from tests.browser.access.checks import CUT
from tests.browser.gallery import FINNS, GOOD, Stage, at, give_card, split
from tests.browser.test_gallery import TWICE
from tests.browser.test_way_in import BAND, SCREEN
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
AMOUNT = re.compile(r'data-(?:yours|each|left)(?:="")?>([^<]+)<')
AS_SENT = "fetch(location.href).then(answer => answer.text())"


def fits(page: Page) -> None:
    """Fail if the page cuts off a word or is too wide, on a narrow phone or at half the width of a phone.

    Half the width has the same effect as letters of twice the size. At this width, the band at the top of the
    page must take at most 15 % of half the height.
    """
    for width in (320, TWICE):
        page.set_viewport_size({"width": width, "height": 812})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (page.title(), width)
        assert page.evaluate(CUT) == [], (page.title(), width)
    assert 0 < page.evaluate(BAND) <= 0.15 * SCREEN / 2, page.title()
    page.set_viewport_size({"width": 375, "height": 812})


def test_german_words_fit_a_narrow_phone_and_letters_of_twice_the_size(
    service: Service, open_page: Callable[..., Page]
) -> None:
    stage = Stage(service, lambda **options: open_page(locale="de-DE", **options))
    order = stage.order()
    page = stage.come(order)
    fits(page)
    stage.ask_for_code(page)
    fits(page)
    page.fill("#code", page.inner_text(".notice code"))
    page.click("button.button-main")
    split(page, 3)
    fits(page)
    page.click("#continue")
    page.wait_for_selector("#number")
    fits(page)
    give_card(page, GOOD)
    at(page, "held")
    fits(page)
    stage.merchant.capture(order.checkout_uuid)
    at(page, "confirmed")
    page.click(".group-more > summary >> nth=0")
    fits(page)
    link = page.get_attribute(".group-line [data-url]", "data-url") or ""
    page.context.close()
    mate = stage.open_page()
    mate.goto(link)
    fits(mate)
    at(stage.mate_pays(mate, FINNS), "share_paid")
    fits(mate)


@pytest.mark.rule("page.dates")
@pytest.mark.parametrize("locale", ["en-GB", "de-AT", "es-ES", "fr-FR", "it-IT", "nl-BE"])
def test_split_amounts_match_the_servers_and_are_typed_with_a_comma(
    service: Service, open_page: Callable[..., Page], locale: str
) -> None:
    stage = Stage(service, lambda **options: open_page(locale=locale, **options))
    hall = [factories.item(name="Hall", quantity=1, unit_price=500_000)]
    page = stage.at_the_split(stage.order(total_amount=500_000, items=hall))
    sent = AMOUNT.findall(page.evaluate(AS_SENT))
    page.check("#split-equal")
    shown = AMOUNT.findall(html.unescape(page.content()))
    assert sent == shown and len(sent) > 3, "by script and without"
    page.fill("#people", "4")
    assert page.locator(".mate .monogram").all_inner_texts() == ["2", "3", "4"], "each has its own"
    page.check("#split-own")
    page.fill("#your-name", "Lea")
    page.fill("#name-2", "Finn")
    page.fill("#amount-2", "10,50")
    for place in (3, 4):  # both rows had the equal share at first
        page.fill(f"#amount-{place}", "")
    left = page.inner_text("[data-left]")
    assert re.sub(r"\D", "", left) == "498950"
    page.click("#continue")
    expect(page.locator(".held-rows dd").nth(2)).to_have_text(left)
