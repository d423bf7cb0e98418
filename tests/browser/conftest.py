from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.browser import chromium
from tests.browser.desk import Desk
from tests.browser.gallery import Stage
from tests.browser.office import Office
from tests.browser.order import Order
from tests.journeys import receiver
from tests.journeys import service as services
from tests.journeys.service import Service

PHONE: ViewportSize = {"width": 375, "height": 812}

expect.set_options(timeout=15_000)  # milliseconds; a long time, because the machine can be busy


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield the complete service of `make run`, with the demo shop."""
    with services.running(tmp_path_factory.mktemp("service")) as started:
        yield started


@pytest.fixture
def order(service: Service) -> Iterator[Order]:
    """Yield an unpaid order of a new merchant. Check the ledger at the end."""
    merchant = service.new_merchant()
    yield Order(service, merchant, merchant.create())
    service.prove_ledger()


@pytest.fixture(scope="module")
def desk(service: Service) -> Iterator[Desk]:
    """Yield a merchant with many orders and a webhook endpoint. Check the ledger at the end."""
    with receiver.listening() as endpoint:
        yield Desk(service, endpoint)
    service.prove_ledger()


@pytest.fixture(scope="module")
def office(service: Service) -> Iterator[Office]:
    """Yield orders that need an operator. Check the ledger at the end."""
    yield Office(service)
    service.prove_ledger()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield a browser for one module.

    It is closed at the end of the module, because Django's ORM does not work while Playwright's event loop runs.
    """
    with sync_playwright() as playwright:
        started = chromium.start(playwright)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Yield a function that opens a page with the size of a phone.

    A script error fails the test. An error on the console does too, unless the page is opened with `may_fail`.
    """
    opened: list[BrowserContext] = []
    complaints: list[str] = []

    def listen(line: ConsoleMessage) -> None:
        if line.type == "error":
            complaints.append(line.text)

    def opener(*, may_fail: bool = False, **options: Any) -> Page:
        context = browser.new_context(viewport=PHONE, **options)
        opened.append(context)
        page = context.new_page()
        if not may_fail:
            page.on("console", listen)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield opener
    for context in opened:
        context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def accessible() -> Callable[[Page], None]:
    """Return a check that fails if axe finds a fault on the page, or if the page is wider than the phone."""
    axe = Axe()

    def check(page: Page) -> None:
        page.wait_for_load_state("load")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], page.url
        found = axe.run(page)
        assert found.violations_count == 0, found.generate_report()

    return check


@pytest.fixture
def stage(service: Service, open_page: Callable[..., Page]) -> Stage:
    return Stage(service, open_page)


@pytest.fixture
def owner(desk: Desk, open_page: Callable[..., Page]) -> Callable[..., Page]:
    """Return a function that opens a browser in which the owner has just logged in."""
    return lambda **options: desk.sign_in(open_page(**options))
