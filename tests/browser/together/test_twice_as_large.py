"""If letters are twice as large, the band at the top of a group's pages takes only a small part of a phone's screen."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.browser.gallery import Stage
from tests.browser.test_buying import heading
from tests.browser.test_way_in import BAND, SCREEN
from tests.browser.together.test_bill import link_of
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
TWICE = "addEventListener('DOMContentLoaded', () => document.documentElement.style.fontSize = '200%')"


def fits(page: Page) -> None:
    page.wait_for_load_state("load")
    assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "32px"
    assert 0 < page.evaluate(BAND) <= 0.15 * SCREEN, page.url


def test_the_header_band_leaves_room_for_the_group_with_large_text(
    service: Service, open_page: Callable[..., Page]
) -> None:
    stage = Stage(service, open_page)
    order = stage.order()
    lea = stage.confirmed(order, mates=3)
    lea.add_init_script(TWICE)
    lea.reload()
    fits(lea)
    link, finns = lea.get_attribute(".one-link", "data-url") or "", link_of(lea, "Finn")
    lea.goto(f"{link}/qr")
    heading(lea, "Scan, take a share, pay")
    fits(lea)
    mate = stage.open_page()
    mate.add_init_script(TWICE)
    for address in (link, finns):
        mate.goto(address)
        fits(mate)
    mate.goto(link)
    mate.click("button.free:has-text('Priya')")
    heading(mate, "Your share")
    fits(mate)
    stage.sign_in(mate)
    mate.wait_for_selector("#number")
    fits(mate)
