"""A merchant with a day of orders, and the browser of an owner who visits every page and state of the portal."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

from tests import factories
from tests.browser.gallery import bill
from tests.journeys import polling
from tests.journeys.merchant import Merchant
from tests.journeys.receiver import Arrival, Receiver
from tests.journeys.service import Service

REFUND_FAILS = "4000000000005126"
COUNT = """
from config.lib import clock
from portal.dashboard import hourly_counts
hourly_counts.catch_up(clock.now())
"""


DISPUTE = """
from payments.models import Payment
from payments.inquiring import inquiries
from payments.providers.sandbox import client
payment = Payment.objects.get(checkout_uuid="{uuid}").pk
client.call_bank("dispute", payment=payment)
inquiries.open_inquiries([payment])
"""
GIVEN_BACK = """
from payments.models import Payment
from payments.providers.sandbox import client
payment = Payment.objects.get(checkout_uuid="{uuid}").pk
client.call_bank("act_in_dashboard", kind="refund", payment=payment, amount=1000)
"""


@dataclass
class Desk:
    """A merchant with orders in many states, and the merchant's webhook endpoint."""

    service: Service
    receiver: Receiver
    merchant: Merchant = field(init=False)
    uuids: dict[str, str] = field(default_factory=dict)
    _number: int = 20400

    def __post_init__(self) -> None:
        self.merchant = self.service.new_merchant("Acme Tickets")
        self.receiver.secrets = [self.merchant.subscribe(self.receiver.url, "*")]
        self.receiver.answer = self._capture
        self._trade()
        self.service.command("shell", "-c", COUNT)

    def _capture(self, arrival: Arrival) -> int:
        if arrival.envelope["type"] == "checkout.authorized":
            self.merchant.capture(arrival.envelope["data"]["checkout_uuid"])
        return 200

    def order(self, name: str) -> str:
        """Create an order of £95.50, and store its UUID under this name."""
        self._number += 1
        order = factories.order(**bill() | {"merchant_order_id": f"A-{self._number}"})
        self.uuids[name] = str(self.merchant.post("checkouts", order).json()["data"]["checkout_uuid"])
        return self.uuids[name]

    def pay(self, name: str, **how: Any) -> str:
        uuid = self.order(name)
        paid = self.merchant.call("POST", f"sandbox/v1/checkouts/{uuid}/pay", how)
        assert paid.status_code == 200, paid.text
        return uuid

    def lose(self, name: str, attempts: int = 1) -> None:
        """Hold the amount of an order, wait for this many failed attempts at the endpoint, and let the hold lapse."""
        uuid = self.pay(name)
        polling.until(
            lambda: len(self.receiver.of("checkout.authorized", uuid)) >= attempts or None,
            within=20,
            what=f"{attempts} attempts",
        )
        self.merchant.advance(uuid, 121)
        self.merchant.awaited(uuid, "voided", within=20)

    def _trade(self) -> None:
        """Create orders in many states. At the end, make the endpoint fail while a hold lapses."""
        shares = [{"name": name, "amount": 2387} for name in ("Finn", "Priya", "نور")]
        split = self.pay("split", shares=shares)
        self.merchant.awaited(split, "captured", within=20)
        self.merchant.call("POST", f"sandbox/v1/checkouts/{split}/pay-share", {})
        for name, card in (("refunded", "4242424242424242"), ("refund failed", REFUND_FAILS)):
            uuid = self.pay(name, card=card)
            self.merchant.awaited(uuid, "captured", within=20)
            self.merchant.refund(uuid)
        self.merchant.awaited(self.uuids["refunded"], "refunded", within=20)
        self.merchant.awaited(self.uuids["refund failed"], "captured", within=20)
        self.merchant.advance(self.order("expired"), 3700)
        self.merchant.cancel(self.order("cancelled"))
        opted = self.pay("opted in")
        self.merchant.awaited(opted, "captured", within=20)
        self.merchant.call("POST", f"sandbox/v1/checkouts/{opted}/opt-in", {"email": "lea@example.com"})
        self.receiver.answer_with(500)
        self.lose("lost", attempts=2)
        self.pay("held")
        self.order("unpaid")

    def sign_in(self, page: Page, merchant: Merchant | None = None) -> Page:
        email, password = (merchant or self.merchant).owner
        page.goto(f"{self.service.base_url}/accounts/login/")
        page.fill("#login", email)
        page.fill("#password", password)
        page.click("button.button-pen")
        page.wait_for_url("**/portal")
        return page

    def at(self, page: Page, path: str) -> Page:
        page.goto(f"{self.service.base_url}{path}")
        return page

    def is_there(self, page: Page, selector: str) -> bool:
        """Load the checklist again, and return whether the page has an element that matches `selector`."""
        return bool(self.at(page, "/portal/checklist").locator(selector).count())


def _checkout(name: str) -> Callable[[Desk, Page], Page]:
    return lambda desk, page: desk.at(page, f"/portal/checkouts/{desk.uuids[name]}")


def _case(name: str, shows: str) -> Callable[[Desk, Page], Page]:
    """Return a function that runs a checklist case while the endpoint answers 500, and then shows the result."""

    def bring(desk: Desk, page: Page) -> Page:
        desk.at(page, "/portal/checklist")
        selector = f"#case-{name} {shows}"
        if not page.locator(selector).count():
            # A previous visit might have made the endpoint capture orders (see `_happened`).
            desk.receiver.answer_with(500)
            page.click(f"#case-{name} button")
            polling.until(lambda: desk.is_there(page, selector) or None, within=90, what=f"the case {name}")
        return page

    return bring


def _path(path: str) -> Callable[[Desk, Page], Page]:
    return lambda desk, page: desk.at(page, path)


def _refund(step: int) -> Callable[[Desk, Page], Page]:
    def shown(desk: Desk, page: Page) -> Page:
        desk.at(page, f"/portal/checkouts/{desk.uuids['split']}/refund")
        page.fill("#reason", "Show moved to January")
        if step == 2:
            page.click("[value=check]")
            page.wait_for_selector("[value=refund]")
        return page

    return shown


def _cancel(desk: Desk, page: Page) -> Page:
    """Open the page of an unpaid order, and on it the form that confirms a cancellation.

    A held order cannot be used, because its hold lapses after two minutes.
    """
    _checkout("unpaid")(desk, page)
    page.click("text=Cancel the order")
    page.wait_for_selector("#cancel-title")
    return page


def _happened(name: str, script: str, shows: str) -> Callable[[Desk, Page], Page]:
    """Return a function that changes a captured order at the bank, and then shows the change on the order's page."""

    def bring(desk: Desk, page: Page) -> Page:
        if name not in desk.uuids:
            desk.receiver.answer = desk._capture
            desk.merchant.awaited(desk.pay(name), "captured", within=20)
            desk.service.command("shell", "-c", script.format(uuid=desk.uuids[name]))
        _checkout(name)(desk, page)
        for _ in range(20):
            if page.locator(shows).count():
                break
            page.wait_for_timeout(500)
            page.reload()
        page.wait_for_selector(shows, timeout=1000)
        return page

    return bring


def _first_day(desk: Desk, page: Page) -> Page:
    """Open the home page of a new merchant that has not captured an order yet."""
    new = desk.service.new_merchant("Brand New")
    page.context.clear_cookies()
    desk.sign_in(page, new)
    return desk.at(page, "/portal")


def _delivery(desk: Desk, page: Page) -> Page:
    desk.at(page, "/portal/deliveries?outcome=failed")
    page.goto(f"{desk.service.base_url}{page.get_attribute('.table-thing a', 'href')}")
    return page


def _personal(desk: Desk, page: Page) -> Page:
    desk.at(page, "/portal/deliveries?event_type=marketing.opted_in")
    page.goto(f"{desk.service.base_url}{page.get_attribute('.table-thing a', 'href')}")
    return page


def _wrong(path: str, wrong: str, field: str, button: str) -> Callable[[Desk, Page], Page]:
    """Return a function that submits an invalid value, and then shows the form with its error."""

    def shown(desk: Desk, page: Page) -> Page:
        desk.at(page, path)
        page.fill(field, wrong)
        page.locator(field).evaluate("field => field.form.setAttribute('novalidate', '')")
        page.click(button)
        page.wait_for_selector(".field-error")
        return page

    return shown


def _new_key(desk: Desk, page: Page) -> Page:
    desk.at(page, "/portal/keys")
    page.fill("#name", "Till")
    page.click("text=Make key")
    page.wait_for_selector("#made")
    return page


def _rotated(desk: Desk, page: Page) -> Page:
    desk.at(page, "/portal/webhooks")
    if page.locator("text=Rotate the secret").count():
        page.click("text=Rotate the secret")
        page.click("text=Rotate it now")
        page.wait_for_selector("#secret")
    return page


def _tested(desk: Desk, page: Page) -> Page:
    desk.at(page, "/portal/webhooks")
    page.click("text=Send test event")
    page.wait_for_selector("#answer .badge.tone-stop, #answer .badge.tone-done", timeout=20_000)
    return page


def _menu(desk: Desk, page: Page) -> Page:
    desk.at(page, "/portal/checkouts")
    page.goto(f"{desk.service.base_url}/portal/menu", referer=page.url)
    return page


def _menu_open(desk: Desk, page: Page) -> Page:
    desk.at(page, "/portal/checkouts")
    page.set_viewport_size({"width": 375, "height": 812})
    page.click(".side-menu")
    return page


# Each page, and each state in which a page looks different, with the function that opens the page.
PAGES: dict[str, Callable[[Desk, Page], Page]] = {
    "50 home": _path("/portal"),
    "50 home, 24 hours": _path("/portal?range=24h"),
    "50 home, 30 days": _path("/portal?range=30d"),
    "50 home, first day": _first_day,
    "51 checkouts": _path("/portal/checkouts"),
    "51 checkouts, filtered": _path("/portal/checkouts?state=captured&since=2026-01-01&at_least=20"),
    "51 checkouts, none match": _path("/portal/checkouts?q=nobody"),
    "52 checkout, split": _checkout("split"),
    "52 checkout, held": _checkout("held"),
    "52 checkout, unpaid": _checkout("unpaid"),
    "52 checkout, hold lapsed": _checkout("lost"),
    "52 checkout, refunded": _checkout("refunded"),
    "52 checkout, refund failed": _checkout("refund failed"),
    "52 checkout, cancelling": _cancel,
    "52 checkout, cancelled": _checkout("cancelled"),
    "52 checkout, disputed": _happened("disputed", DISPUTE, ".stages"),
    "52 checkout, given back elsewhere": _happened(
        "elsewhere", GIVEN_BACK, ".place-words:has-text('bank’s dashboard')"
    ),
    "53 refund, step 1": _refund(1),
    "53 refund, step 2": _refund(2),
    "52 groups": _path("/portal/groups"),
    "53 refunds": _path("/portal/refunds"),
    "54 balance": _path("/portal/balance"),
    "55 webhooks": _path("/portal/webhooks"),
    "55 webhooks, refused": _wrong("/portal/webhooks", "ftp://shop", "#url", "text=Save endpoint"),
    "55 webhooks, rotated": _rotated,
    "55 webhooks, tested": _tested,
    "56 deliveries": _path("/portal/deliveries"),
    "56 deliveries, parked": _path("/portal/deliveries?outcome=parked"),
    "57 delivery": _delivery,
    "57 delivery, personal": _personal,
    "65 requests": _path("/portal/requests"),
    "58 keys": _path("/portal/keys"),
    "58 keys, made": _new_key,
    "58 keys, refused": _wrong("/portal/keys", "", "#name", "text=Make key"),
    "59 checklist": _path("/portal/checklist"),
    "59 checklist, a case runs": _case("twice", ".evidence"),
    "59 checklist, a case failed": _case("retry", ".notice"),
    "60 team": _path("/portal/team"),
    "60 team, refused": _wrong("/portal/team", "nobody", "#email", "button:text-is('Invite')"),
    "61 settings": _path("/portal/settings"),
    "61 settings, refused": _wrong("/portal/settings", "no host!", "#return_hosts", "text=Save settings"),
    "62 audit log": _path("/portal/audit"),
    "63 menu": _menu,
    "63 menu, open on a phone": _menu_open,
    "00 front page": _path("/"),
    "64 nothing there": _path("/portal/checkouts/01a1ff87-30a0-763f-ad37-2dcca246cbf9"),
}
NEEDS_SCRIPT = {"63 menu, open on a phone"}  # without JavaScript, the menu is a separate page
