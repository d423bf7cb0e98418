"""Every page and state that a customer or a mate can see. Each one is produced on the running service."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from playwright.sync_api import Page, expect

from tests import factories
from tests.browser import way_in
from tests.browser.order import Order
from tests.journeys.merchant import Merchant
from tests.journeys.service import Service

GOOD, DECLINED, ASKS, REFUND_FAILS = (
    "4242424242424242",
    "4000000000000002",
    "4000002500003155",
    "4000000000005126",
)
FINNS = "5555555555554444"
MATES = (
    *("Finn", "Priya", "نور", "Amadou", "Zoë", "Kai", "Mia", "Noor", "Sam", "Ana"),
    *("Leo", "Ida", "Max", "Eva", "Tom", "Ada", "Ben", "Gus", "Kim"),
)
NEVER_ASK_AGAIN = "document.addEventListener('htmx:beforeRequest', (event) => event.preventDefault())"
# Phone numbers. Each payer gets a new one, because a number gets at most one code in 30 seconds.
numbers = count(200_000)
COUNT_NOTHING = """
from hosted_page.models import ShareTake, SmsMessage
SmsMessage.objects.filter(is_counted=True).update(is_counted=False)
ShareTake.objects.all().delete()
"""


@dataclass
class Stage:
    """A merchant, and methods that bring a payer's browser to a page. Each payer has a new phone number."""

    service: Service
    open_page: Callable[..., Page]
    merchant: Merchant = field(init=False)

    def __post_init__(self) -> None:
        self.merchant = self.service.new_merchant("Acme Tickets")
        # All payers of all stages have the same IP address. Without this call, they would exceed the limits
        # per address.
        self.service.command("shell", "-c", COUNT_NOTHING)

    def order(self, **changes: Any) -> Order:
        return Order(self.service, self.merchant, self.merchant.create(**bill() | changes))

    def come(self, order: Order) -> Page:
        page = self.open_page()
        page.goto(order.url)
        return page

    def ask_for_code(self, page: Page) -> None:
        page.fill("#phone", f"07400 {next(numbers)}")
        page.click("button.button-main")

    def sign_in(self, page: Page) -> None:
        self.ask_for_code(page)
        page.fill("#code", page.inner_text(".notice code"))
        page.click("button.button-main")

    def at_the_split(self, order: Order | None = None) -> Page:
        page = self.come(order or self.order())
        self.sign_in(page)
        expect(page.locator(".all-mine")).to_be_visible()
        return page

    def at_the_card(self, order: Order | None = None, mates: int = 0) -> Page:
        page = self.at_the_split(order)
        if mates:
            split(page, mates)
        page.click("#continue" if mates else ".all-mine")
        page.wait_for_selector("#number")
        return page

    def after_card(self, order: Order, number: str = GOOD, mates: int = 0) -> Page:
        page = self.at_the_card(order, mates)
        give_card(page, number)
        return page

    def held(self, order: Order | None = None, mates: int = 0) -> Page:
        return at(self.after_card(order or self.order(), mates=mates), "held")

    def confirmed(self, order: Order | None = None, mates: int = 0) -> Page:
        order = order or self.order()
        page = self.held(order, mates)
        self.merchant.capture(order.checkout_uuid)
        return stay(at(page, "confirmed"))

    def mate_at_pay_link(self, order: Order | None = None) -> Page:
        """Return the browser of a mate who has opened the first pay link of a captured order."""
        lea = self.confirmed(order, mates=2)
        link = lea.get_attribute(".group-line [data-url]", "data-url") or ""
        lea.context.close()
        page = self.open_page()
        page.goto(link)
        return page

    def mate_pays(self, page: Page, number: str = FINNS) -> Page:
        self.sign_in(page)
        page.wait_for_selector("#number")
        give_card(page, number)
        return page


def bill() -> dict[str, Any]:
    """Return an order's items for £95.50, with a date, a fee and a discount."""
    show = {"event_start": "2026-12-12T19:30:00Z", "time_zone": "Europe/London"}
    items = [
        {"name": "Standing ticket, Blue Room", "quantity": 4, "unit_price": 2250, "custom_data": show},
        {"name": "Booking fee", "quantity": 4, "unit_price": 175, "category": "fee"},
        {"name": "Early-bird discount", "quantity": 1, "unit_price": -150, "category": "discount"},
    ]
    return {"total_amount": 9550, "items": [factories.item(**item) for item in items]}


def split(page: Page, mates: int) -> None:
    """Split an order by amounts, with £4.00 for each of these mates."""
    page.check("#split-own")
    page.fill("#your-name", "Lea")
    for position, name in enumerate(MATES[:mates], start=2):
        if not page.locator(f"#name-{position}").is_visible():
            page.click("[data-add]")
        page.fill(f"#name-{position}", name)
        page.fill(f"#amount-{position}", "4")


def runs_scripts(page: Page) -> bool:
    """Return whether the browser runs scripts. The page must have an element for browsers that do not."""
    return page.locator("noscript > *").count() == 0


def give_card(page: Page, number: str) -> None:
    page.fill("#number", number)
    page.fill("#expiry", "08 / 49")
    page.fill("[name=code]", "123")
    page.click("#pay")


def at(page: Page, state: str) -> Page:
    page.wait_for_selector(f"#status[data-state={state}]", timeout=20_000)
    return page


def stay(page: Page) -> Page:
    if page.locator("#stay:visible").count():
        page.click("#stay")
    return page


def _split_equal(stage: Stage) -> Page:
    page = stage.at_the_split()
    page.check("#split-equal")
    page.fill("#people", "4")
    return page


def _split_twenty(stage: Stage) -> Page:
    page = stage.at_the_split()
    page.check("#split-equal")
    page.fill("#people", "20")
    return page


def _split_own(stage: Stage) -> Page:
    page = stage.at_the_split()
    split(page, 3)
    return page


def _split_over(stage: Stage) -> Page:
    page = _split_own(stage)
    page.fill("#amount-2", "100")
    return page


def _declined(stage: Stage) -> Page:
    page = stage.after_card(stage.order(), DECLINED)
    expect(page.locator("[role=alert]")).to_be_visible()
    return page


def _card_error(stage: Stage) -> Page:
    page = stage.after_card(stage.order(), "4242424242424241")
    expect(page.locator("[aria-invalid]").first).to_be_visible()
    return page


def _challenge(stage: Stage) -> Page:
    page = stage.after_card(stage.order(), ASKS)
    page.wait_for_selector("[name=answer]")
    return page


def _confirm(stage: Stage) -> Page:
    order = stage.order()
    page = stage.after_card(order, ASKS)
    page.wait_for_selector("[name=answer]")
    page.goto(order.url)
    return at(page, "confirm")


def _silent(stage: Stage, state: str) -> Page:
    order = stage.order()
    page = stage.at_the_card(order)
    order.let_the_bank_fail(times=1000)
    give_card(page, GOOD)
    at(page, "checking")
    if state == "silent":
        order.grow_older(60)
        at(page, "silent")
    # Stop the page's updates. Otherwise, the page would show the bank's recovery before the picture is taken.
    page.evaluate(NEVER_ASK_AGAIN)
    order.let_the_bank_fail(times=0)
    return page


def _releasing(stage: Stage) -> Page:
    order = stage.order()
    page = at(stage.after_card(order, "4000000000008013"), "held")
    stage.merchant.cancel(order.checkout_uuid)
    return at(page, "releasing")


def _released(stage: Stage) -> Page:
    order = stage.order()
    page = stage.held(order)
    stage.merchant.advance(order.checkout_uuid, 121)
    return at(page, "released")


def _cancelled(stage: Stage) -> Page:
    order = stage.order()
    page = stage.held(order)
    stage.merchant.cancel(order.checkout_uuid)
    return at(page, "released")


def _cancelled_unpaid(stage: Stage) -> Page:
    order = stage.order()
    stage.merchant.cancel(order.checkout_uuid)
    return at(stage.come(order), "cancelled")


def _expired(stage: Stage) -> Page:
    order = stage.order()
    stage.merchant.advance(order.checkout_uuid, 3601)
    return at(stage.come(order), "expired")


def _links(stage: Stage) -> Page:
    page = stage.confirmed(mates=3)
    page.click(".group-more > summary >> nth=0")
    return page


def _twenty_links(stage: Stage) -> Page:
    return stage.confirmed(mates=19)


def _twenty_opened(stage: Stage) -> Page:
    page = _twenty_links(stage)
    page.click("#fold-out")
    expect(page.locator(".group-line").last).to_be_visible()
    return page


def _qr(stage: Stage) -> Page:
    page = stage.confirmed(mates=2)
    page.click(".group-more > summary >> nth=0")
    page.click("summary.group-tool >> nth=0")
    return page


def _refunding(stage: Stage) -> Page:
    order = stage.order()
    page = at(stage.after_card(order, REFUND_FAILS), "held")
    stage.merchant.capture(order.checkout_uuid)
    stay(at(page, "confirmed"))
    stage.merchant.refund(order.checkout_uuid)
    page.goto(order.url)
    at(page, "refunding")
    # Stop the page's updates. Otherwise, the page would show the failed refund before the picture is taken.
    page.evaluate(NEVER_ASK_AGAIN)
    return page


def _refunded(stage: Stage) -> Page:
    order = stage.order()
    page = stage.confirmed(order)
    stage.merchant.refund(order.checkout_uuid)
    stage.merchant.awaited(order.checkout_uuid, "refunded", within=15)
    page.goto(order.url)
    return at(page, "refunded")


def _elsewhere(stage: Stage) -> Page:
    order = stage.order()
    page = stage.at_the_split(order)
    stage.at_the_split(order).context.close()
    page.goto(order.url)
    return page


def _not_found(stage: Stage) -> Page:
    page = stage.open_page()
    page.goto(f"{stage.service.base_url}/pay?id=01a1ff87-30a0-763f-ad37-2dcca246cbf9")
    return page


def _mate_card(stage: Stage) -> Page:
    page = stage.mate_at_pay_link()
    stage.sign_in(page)
    page.wait_for_selector("#number")
    return page


def _mate_said_no(stage: Stage) -> Page:
    page = stage.mate_at_pay_link()
    page.click(".leave button")
    return at(page, "declined")


def _link_ended(stage: Stage) -> Page:
    order = stage.order()
    page = stage.mate_at_pay_link(order)
    stage.merchant.advance(order.checkout_uuid, 10 * 86_400)
    stage.merchant.advance(order.checkout_uuid, 5 * 86_400)
    page.reload()
    return at(page, "link_ended")


def offers(stage: Stage) -> Page:
    """Open the merchant's opt-in page through the link that the merchant can send to a customer."""
    order = stage.order()
    link = stage.merchant.call("GET", f"merchant/v1/checkouts/{order.checkout_uuid}/opt-in-link").json()
    page = stage.open_page()
    page.goto(link["data"]["url"])
    return page


STATES: dict[str, Callable[[Stage], Page]] = {
    **way_in.STATES,
    "05 split, all mine": Stage.at_the_split,
    "06 split, equally": _split_equal,
    "07 split, twenty people": _split_twenty,
    "08 split, own amounts": _split_own,
    "09 split, too much": _split_over,
    "10 card": Stage.at_the_card,
    "10 card, with mates": lambda stage: stage.at_the_card(mates=3),
    "11 card, mistyped": _card_error,
    "12 card, declined": _declined,
    "13 the bank asks": _challenge,
    "14 confirm with your bank": _confirm,
    "15 checking with your bank": lambda stage: _silent(stage, "checking"),
    "16 the bank is silent": lambda stage: _silent(stage, "silent"),
    "17 held": Stage.held,
    "18 confirmed": Stage.confirmed,
    "19 confirmed, the bill": _links,
    "20 confirmed, QR": _qr,
    "21 confirmed, twenty people": _twenty_links,
    "21 confirmed, twenty people, each shown": _twenty_opened,
    "22 refunding": _refunding,
    "23 refunded": _refunded,
    "24 releasing, the bank is slow": _releasing,
    "24 released": _released,
    "25 released by the shop": _cancelled,
    "26 cancelled unpaid": _cancelled_unpaid,
    "27 expired": _expired,
    "28 somebody else is paying": _elsewhere,
    "29 no such order": _not_found,
    "30 mate is asked": Stage.mate_at_pay_link,
    "31 mate's card": _mate_card,
    "32 mate has paid": lambda stage: at(stage.mate_pays(stage.mate_at_pay_link()), "share_paid"),
    "33 mate said no": _mate_said_no,
    "34 link has ended": _link_ended,
    "35 offers, by a link in a mail": offers,
}
