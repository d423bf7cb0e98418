"""What a page costs somebody with bad reception, and whether it stands still."""

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.order import Order
from tests.browser.test_buying import sign_in

pytestmark = pytest.mark.journey
MAX_BYTES = 60 * 1024
MAX_BEFORE_PAINT = 4
MAX_SHIFT = 0.02
BLOCKING = ("Document", "Stylesheet")  # scripts are deferred, pictures are not waited for
TEXTS = ("Stylesheet", "Script")
SHIFTS = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => { for (const it of list.getEntries()) sum += it.value; })
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(sum), 500);
})"""


class Wire:
    """What goes over the wire to a page, from a cold cache."""

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
        """Return what goes over it where static files stand compressed, as outside `local`."""
        sent = self.sizes.values()
        return sum(sent) - sum(self._saved(request) for request in self.sizes if self.kinds[request] in TEXTS)

    def _saved(self, request: str) -> int:
        text = self._session.send("Network.getResponseBody", {"requestId": request})["body"].encode()
        return len(text) - len(gzip.compress(text))


def test_the_first_view_is_light(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    wire = Wire(page)
    page.goto(order.url)
    page.wait_for_load_state("networkidle")
    assert 10_000 < sum(wire.sizes.values()) <= MAX_BYTES
    blocking = [kind for kind in wire.kinds.values() if kind in BLOCKING]
    assert "Document" in blocking and len(blocking) <= MAX_BEFORE_PAINT
    scripts = page.locator("head script[src]:not([defer])")
    assert scripts.count() == 0, "no script is waited for"


@pytest.mark.long
def test_the_steps_stand_still(order: Order, open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto(order.url)
    assert page.evaluate(SHIFTS) <= MAX_SHIFT
    sign_in(page)
    page.wait_for_selector(".all-mine")
    assert page.evaluate(SHIFTS) <= MAX_SHIFT
    page.click("button.button-main")
    page.wait_for_selector("#number")
    assert page.evaluate(SHIFTS) <= MAX_SHIFT
