"""Limits for a page: its size in bytes, the files that delay its first paint, and its layout shifts."""

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.gallery import GOOD, Stage, at, give_card
from tests.browser.order import Order
from tests.browser.test_buying import sign_in
from tests.journeys.service import Service

pytestmark = pytest.mark.journey
MAX_BYTES = 60 * 1024
MAX_BEFORE_PAINT = 4
MAX_SHIFT = 0
# The files that delay the first paint, without the page itself. Deferred scripts and pictures do not delay
# it. A style sheet in the body delays only the elements below it.
BLOCKING = """performance.getEntriesByType("resource")
  .filter(it => it.renderBlockingStatus === "blocking").map(it => it.name)"""
TEXTS = ("Stylesheet", "Script")
SHIFTS = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => { for (const it of list.getEntries()) sum += it.value; })
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(sum), 500);
})"""


class Wire:
    """Records how many bytes a page transfers. The browser's cache is off."""

    def __init__(self, page: Page) -> None:
        self.kinds: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        session = self._session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        session.on("Network.responseReceived", self._receive)
        session.on("Network.loadingFinished", self._finish)

    def _receive(self, event: dict[str, Any]) -> None:
        self.kinds[event["requestId"]] = event["type"]

    def _finish(self, event: dict[str, Any]) -> None:
        self.sizes[event["requestId"]] = event["encodedDataLength"]

    def compressed(self) -> int:
        """Return how many bytes would be sent if static files were compressed, as they are outside `local`."""
        sent = self.sizes.values()
        return sum(sent) - sum(self._saved(request) for request in self.sizes if self.kinds[request] in TEXTS)

    def _saved(self, request: str) -> int:
        text = self._session.send("Network.getResponseBody", {"requestId": request})["body"].encode()
        return len(text) - len(gzip.compress(text))


def test_the_first_view_is_small_to_download(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    assert is_light(page, order.url) <= MAX_BYTES, "even where nothing is compressed"


@pytest.mark.long
def test_the_bill_and_the_group_link_are_small_and_shift_no_layout(
    service: Service, open_page: Callable[..., Page]
) -> None:
    stage = Stage(service, open_page)
    order = stage.order()
    lea = stage.confirmed(order, mates=3)
    link = lea.get_attribute(".one-link", "data-url") or ""
    own = lea.get_attribute(".group-line [data-url]", "data-url") or ""
    finn = open_page()
    for page, address in (
        (lea.context.new_page(), order.url),
        (lea.context.new_page(), f"{link}/qr"),
        (finn, link),
        (open_page(), own),
    ):
        is_light(page, address)
    finn.click("button.free:has-text('Priya')")
    stage.sign_in(finn)
    finn.wait_for_selector("#number")
    is_light(finn.context.new_page(), finn.url)


@pytest.mark.long
def test_each_step_is_small_to_download_and_shifts_no_layout(
    service: Service, open_page: Callable[..., Page]
) -> None:
    stage = Stage(service, open_page)
    order = stage.order()
    page = stage.at_the_split(order)
    is_light(page.context.new_page(), order.url)
    page.click(".all-mine")
    page.wait_for_selector("#number")
    is_light(page.context.new_page(), page.url)
    give_card(page, GOOD)
    at(page, "held")
    is_light(page.context.new_page(), order.url)


def is_light(page: Page, address: str) -> int:
    """Load a page with an empty cache. Fail if its bytes, blocking files or layout shifts exceed the limits.

    Return how many bytes this server sends for the page, without compression.
    """
    wire = Wire(page)
    page.goto(address)
    page.wait_for_load_state("networkidle")
    weight = sum(wire.sizes.values())
    assert 10_000 < wire.compressed() <= MAX_BYTES, address
    blocking = page.evaluate(BLOCKING)
    assert 0 < len(blocking) < MAX_BEFORE_PAINT, blocking
    scripts = page.locator("head script[src]:not([defer])")
    assert scripts.count() == 0, "no script is waited for"
    assert page.evaluate(SHIFTS) <= MAX_SHIFT, address
    return weight


@pytest.mark.long
def test_the_steps_shift_no_layout(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto(order.url)
    assert page.evaluate(SHIFTS) <= MAX_SHIFT
    sign_in(page)
    page.wait_for_selector(".all-mine")
    assert page.evaluate(SHIFTS) <= MAX_SHIFT
    page.click("button.button-main")
    page.wait_for_selector("#number")
    assert page.evaluate(SHIFTS) <= MAX_SHIFT
