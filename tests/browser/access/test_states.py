"""Every state of payers in each language, and every page of the portal, under the checks of the main pages."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.browser.access import checks
from tests.browser.desk import PAGES, Desk
from tests.browser.gallery import Stage
from tests.browser.test_gallery import LANGUAGES, STATES
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
SIZES = (375, 1280)


def all_is_well(page: Page) -> None:
    page.wait_for_load_state("load")  # of a page that a click has led to there may be no body yet
    for width in SIZES:
        page.set_viewport_size({"width": width, "height": 812})
        found = {check: run(page) for check, run in checks.ALL.items()}
        assert not any(found.values()), (width, found)


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_state_is_for_everybody(
    service: Service, open_page: Callable[..., Page], language: str, name: str
) -> None:
    stage = Stage(service, lambda **options: open_page(may_fail=True, locale=language, **options))
    all_is_well(STATES[name](stage))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_portal_is_for_everybody(desk: Desk, open_page: Callable[..., Page], name: str) -> None:
    all_is_well(PAGES[name](desk, desk.sign_in(open_page(may_fail=True))))
