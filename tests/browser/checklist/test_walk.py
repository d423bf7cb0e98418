"""All cases of the checklist. They start in a browser, and a merchant's server answers them over real HTTP."""

import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.journeys import receiver
from tests.journeys.merchant import Merchant
from tests.journeys.receiver import Arrival, Receiver
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]

CASES = ("twice", "retry", "slow", "lapse", "refused", "lost", "unresolved", "pledged")
WITHIN = 180_000  # milliseconds; longer than a hold, which lasts two minutes


class Shop:
    """A merchant's server. It ignores repeated events, retries captures in doubt, and reads the current state."""

    def __init__(self, service: Service, endpoint: Receiver) -> None:
        self.merchant: Merchant = service.new_merchant("Acme Tickets")
        endpoint.secrets = [self.merchant.subscribe(endpoint.url, "*")]
        endpoint.answer = self.receive
        self.endpoint, self.known = endpoint, set[str]()
        self.remembers = True

    def receive(self, arrival: Arrival) -> int:
        if self.remembers and arrival.event_id in self.known:
            return 200
        self.known.add(arrival.event_id)
        if arrival.envelope["type"] != "checkout.authorized":
            return 200
        status = self.capture(arrival.envelope["data"]["checkout_uuid"])
        if status == 500:
            self.known.discard(arrival.event_id)
        return status

    def capture(self, uuid: str) -> int:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            answer = self.merchant.post(f"checkouts/{uuid}/capture")
            if answer.status_code != 504 and "operation_in_progress" not in answer.text:
                return 200
            time.sleep(1)
        return 500

    def look(self) -> None:
        assert self.merchant.call("GET", "merchant/v1/checkouts?sort=updated_at&limit=200").status_code == 200


@pytest.fixture(scope="module")
def shop(service: Service) -> Iterator[Shop]:
    with receiver.listening() as endpoint:
        yield Shop(service, endpoint)
    service.prove_ledger()


def at_the_checklist(shop: Shop, service: Service, page: Page) -> Page:
    email, password = shop.merchant.owner
    page.goto(f"{service.base_url}/accounts/login/")
    page.fill("#login", email)
    page.fill("#password", password)
    page.click("button.button-pen")
    page.wait_for_url("**/portal")
    page.goto(f"{service.base_url}/portal/checklist")
    return page


@pytest.mark.rule("trial.order")
class TestWalk:
    def test_a_correct_server_passes_every_case(
        self, shop: Shop, service: Service, open_page: Callable[..., Page]
    ) -> None:
        page = at_the_checklist(shop, service, open_page())
        for name in CASES:
            page.click(f"#case-{name} button")
        looked_until = time.monotonic() + 20
        while time.monotonic() < looked_until:
            shop.look()
            page.wait_for_timeout(1000)
        for name in CASES:
            expect(page.locator(f"#case-{name} details")).to_be_visible(timeout=WITHIN)
        page.click("#case-rotate button")
        page.click("text=Rotate and run it")
        shop.endpoint.secrets = [page.inner_text("#secret"), *shop.endpoint.secrets]
        expect(page.locator("#case-rotate details")).to_be_visible(timeout=WITHIN)
        assert not shop.endpoint.refused

    def test_a_server_that_forgets_events_fails_the_duplicate_delivery_case(
        self, shop: Shop, service: Service, open_page: Callable[..., Page]
    ) -> None:
        page = at_the_checklist(shop, service, open_page())
        shop.remembers = False
        page.click("#case-twice button")
        expect(page.locator("#case-twice .notice")).to_contain_text("captured twice", timeout=WITHIN)
        shop.remembers = True

    def test_the_merchants_own_order_can_be_used_for_a_case(
        self, shop: Shop, service: Service, open_page: Callable[..., Page]
    ) -> None:
        uuid = shop.merchant.create()
        page = at_the_checklist(shop, service, open_page())
        page.click("text=choose your order")
        page.click("#case-retry button")
        shop.merchant.awaited(uuid, "captured", within=30)
        expect(page.locator("#case-retry details")).to_be_visible(timeout=WITHIN)
