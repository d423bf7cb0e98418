"""If text is twice as large on a narrow phone, no word is broken, and the text in charts is larger too."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import chromium
from tests.browser.access import large_text, walk
from tests.browser.desk import Desk
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
PAYERS = ("phone", "code", "split", "card", "held", "bill", "mate", "group")
PORTAL = {
    "home": "/portal",
    "home of a day": "/portal?range=24h",
    "home of a month": "/portal?range=30d",
    "checkouts": "/portal/checkouts",
    "groups": "/portal/groups",
    "refunds": "/portal/refunds",
    "balance": "/portal/balance",
    "webhooks": "/portal/webhooks",
    "deliveries": "/portal/deliveries",
    "requests": "/portal/requests",
    "keys": "/portal/keys",
    "checklist": "/portal/checklist",
    "team": "/portal/team",
    "settings": "/portal/settings",
    "audit": "/portal/audit",
}
WITH_CHARTS = ("home", "home of a day", "home of a month", "groups")


@pytest.fixture(scope="module")
def large(browser: Browser) -> Iterator[Browser]:
    """Yield a browser that shows text at twice the size."""
    started = chromium.launch(browser.browser_type, large_text.TWICE)
    yield started
    started.close()


@pytest.fixture(scope="module")
def found(service: Service, large: Browser) -> Iterator[dict[str, list[str]]]:
    """Yield the faults of each of a payer's pages."""
    results: dict[str, list[str]] = {}

    def look(name: str, page: Page) -> None:
        results[name] = large_text.faults(page)

    walk.payers(service, large, look)
    yield results
    service.prove_ledger()


@pytest.fixture(scope="module")
def owner_page(desk: Desk, large: Browser) -> Iterator[Page]:
    """Yield a page of the browser with large text. The merchant's owner is signed in there."""
    yield desk.sign_in(large.new_page())


@pytest.mark.rule("access.zoom")
@pytest.mark.parametrize("name", PAYERS)
def test_words_of_payers_pages_stay_whole(found: dict[str, list[str]], name: str) -> None:
    assert found[name] == []


@pytest.mark.rule("access.zoom")
@pytest.mark.parametrize("name", PORTAL)
def test_words_of_the_portal_stay_whole(desk: Desk, owner_page: Page, name: str) -> None:
    assert large_text.faults(desk.at(owner_page, PORTAL[name])) == []


@pytest.mark.rule("access.zoom")
@pytest.mark.parametrize("name", WITH_CHARTS)
def test_the_text_of_charts_grows_with_the_page(
    desk: Desk, owner: Callable[..., Page], owner_page: Page, name: str
) -> None:
    heights = []
    for page in (owner(), owner_page):
        desk.at(page, PORTAL[name])
        for width in (375, 1280):
            page.set_viewport_size({"width": width, "height": 812})
            assert page.evaluate(large_text.OVERLAPPING) == [], width
        heights.append(dict(page.evaluate(large_text.LETTERS)))
    usual, large = heights
    assert large and all(height >= 1.9 * usual[words] for words, height in large.items())


WRONG = {
    "broken": "<div style='display: flex'><p style='overflow-wrap: anywhere; width: 3ch'>Night</p></div>",
    "wide": "<p style='width: 40rem'>Held</p>",
    "cut": "<p style='white-space: nowrap; overflow: hidden; width: 5rem'>Held, not taken yet</p>",
}


@pytest.mark.parametrize("fault", WRONG)
def test_the_check_finds_each_fault(open_page: Callable[..., Page], fault: str) -> None:
    page = open_page()
    page.set_content(f"<meta name=viewport content='width=device-width'>{WRONG[fault]}")
    assert any(fault in line for line in large_text.faults(page))
