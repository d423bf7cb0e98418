"""Orders that need an operator, and an operator's browser in the admin."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from playwright.sync_api import Page

from tests import factories
from tests.browser.gallery import bill
from tests.journeys import polling
from tests.journeys.merchant import Merchant
from tests.journeys.service import Service

NEVER_ARRIVES = "4000000000006983"
REFUND_FAILS = "4000000000005126"
PASSWORD = "a bill on the table"
OPERATOR = """
from portal.models import User
User.objects.create_superuser("{email}", "{password}")
"""
REPORTS = """
from datetime import timedelta
from config.lib import clock
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Operation
of = lambda uuid, kind: Operation.objects.filter(payment__checkout_uuid=uuid, kind=kind).latest("created_at")
reporting.report_operation(of("{captured}", "capture"), kinds.ANOTHER_AMOUNT, amount=4850)
rows = Discrepancy.objects.filter(kind="refund_part_failed", closed_at=None)
rows.update(created_at=clock.now() - timedelta(days=3), mailed_at=clock.now())
rows = Discrepancy.objects.filter(kind="another_amount", closed_at=None)
rows.update(created_at=clock.now() - timedelta(hours=20))  # the page has the oldest ones
"""
# The first script prints whether the mate's share is reimbursed, the second whether the failed refund is reported.
REIMBURSED = """
from payments.models import Operation
about = Operation.objects.filter(payment__checkout_uuid="{failed}", purpose="reimbursement", state="succeeded")
print(about.exists())
"""
REPORTED = """
from payments.models import Discrepancy
about = Discrepancy.objects.filter(operation__payment__checkout_uuid="{failed}", kind="refund_part_failed")
print(about.exists())
"""
# Makes the order whose refund failed three days older, with all its rows.
EARLIER = """
from datetime import timedelta
from django.db.models import F
from checkout.models import Change, Checkout, Refund
from payments.models import Operation, Payment
def earlier(rows, *names):
    rows.update(**{{name: F(name) - timedelta(days=3) for name in names}})
earlier(Checkout.objects.filter(pk="{failed}"), "created_at", "payable_until", "authorized_at", "capture_before",
    "captured_at")
earlier(Refund.objects.filter(checkout="{failed}"), "created_at")
earlier(Payment.objects.filter(checkout_uuid="{failed}"), "created_at")
earlier(Operation.objects.filter(payment__checkout_uuid="{failed}"), "created_at", "ended_at")
"""
REPORT = """
from datetime import timedelta
from config.lib import clock
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Operation
capture = Operation.objects.get(payment__checkout_uuid="{captured}", kind="capture")
reporting.report_operation(capture, kinds.TABLE["{kind}"])
rows = Discrepancy.objects.filter(operation=capture, kind="{kind}", closed_at=None)
rows.update(created_at=clock.now() - timedelta(hours=19))
"""
FAILING = """
from config.lib import clock
from webhooks.models import Endpoint, Subscription
row, now = Subscription.objects.get(url="{url}"), clock.now()
error = "could not connect: the certificate has expired or is not yet valid"
Endpoint.objects.create(subscription=row, last_success_at=now, failing_since=now, last_error=error, hung_in_a_row=3)
"""


SUSPEND = """
from payments import operator_stops
from payments.models import Merchant
operator_stops.suspend(Merchant.objects.filter(name="Zebra Tours").latest("pk"), reason="Tickets that do not exist")
"""


@dataclass
class Office:
    """A merchant's orders, and the discrepancies that are reported for them."""

    service: Service
    merchant: Merchant = field(init=False)
    uuids: dict[str, str] = field(default_factory=dict)
    email: str = field(default_factory=lambda: f"operator-{uuid4().hex[:8]}@pay.example")
    _number: int = 20400

    def __post_init__(self) -> None:
        self.merchant = self.service.new_merchant("Acme Tickets")
        self.service.command("shell", "-c", OPERATOR.format(email=self.email, password=PASSWORD))
        self._fail_refund_of_mate()
        self.capture("captured")
        self.service.command("shell", "-c", REPORTS.format(**self.uuids))
        self.service.command("shell", "-c", EARLIER.format(**self.uuids))

    def pay(self, name: str, card: str = "4242424242424242", **how: Any) -> str:
        """Create an order of £95.50, hold its amount on a card, and store its UUID under this name."""
        self._number += 1
        order = factories.order(**bill() | {"merchant_order_id": f"NF-{self._number}"})
        self.uuids[name] = str(self.merchant.post("checkouts", order).json()["data"]["checkout_uuid"])
        paid = self.merchant.call(
            "POST", f"sandbox/v1/checkouts/{self.uuids[name]}/pay", {"card": card} | how
        )
        assert paid.status_code == 200, paid.text
        return self.uuids[name]

    def capture(self, name: str, card: str = "4242424242424242", **how: Any) -> None:
        self.merchant.capture(self.pay(name, card, **how))
        self.merchant.awaited(self.uuids[name], "captured", within=20)

    def _fail_refund_of_mate(self) -> None:
        """Refund an order with one mate. The refund succeeds for the lead's card, but fails for the mate's."""
        self.capture("failed", shares=[{"name": "Finn", "amount": 4775}])
        path = f"sandbox/v1/checkouts/{self.uuids['failed']}/pay-share"
        paid = self.merchant.call("POST", path, {"card": REFUND_FAILS})
        assert paid.status_code == 200, paid.text
        polling.until(lambda: self._is(REIMBURSED), within=20, what="the reimbursement")
        self.merchant.refund(self.uuids["failed"])
        polling.until(lambda: self._is(REPORTED), within=20, what="the report of the failed refund")

    def _is(self, script: str) -> bool:
        printed = self.service.command("shell", "-c", script.format(**self.uuids))
        return printed.strip().endswith("True")

    def leave_in_doubt(self) -> str:
        """Leave a capture in doubt for the next two minutes. Return the checkout's UUID."""
        uuid = self.pay("in doubt", NEVER_ARRIVES)
        answer = self.merchant.call("POST", f"merchant/v1/checkouts/{uuid}/capture", {})
        assert answer.status_code == 504, answer.text
        return uuid

    def fail_endpoint(self) -> None:
        """Make deliveries to an endpoint with a long address fail."""
        url = f"http://127.0.0.1:9/{uuid4().hex}{uuid4().hex}"
        self.service.new_merchant("Rival").subscribe(url)
        self.service.command("shell", "-c", FAILING.format(url=url))

    def suspend(self) -> None:
        """Suspend a merchant."""
        self.service.new_merchant("Zebra Tours")
        self.service.command("shell", "-c", SUSPEND)

    def report(self, kind: str) -> None:
        """Report a discrepancy for the captured order."""
        self.service.command("shell", "-c", REPORT.format(kind=kind, **self.uuids))

    def sign_in(self, page: Page) -> Page:
        page.goto(f"{self.service.base_url}/accounts/login/?next=/admin/")
        page.fill("#login", self.email)
        page.fill("#password", PASSWORD)
        page.click("button.button-pen")
        page.wait_for_url("**/admin/")
        return page

    def at(self, page: Page, path: str) -> Page:
        page.goto(f"{self.service.base_url}{path}")
        return page


def _path(path: str) -> Callable[[Office, Page], Page]:
    return lambda office, page: office.at(page, path)


def _overview(office: Office, page: Page) -> Page:
    office.at(page, "/admin/")
    if page.evaluate("() => 'htmx' in window"):
        page.wait_for_selector("text=Oldest job in a queue")
    return page


def _operations(office: Office, page: Page) -> Page:
    office.leave_in_doubt()
    return office.at(page, "/admin/operations/")


def _of(path: str, name: str) -> Callable[[Office, Page], Page]:
    return lambda office, page: office.at(page, path.format(office.uuids[name]))


def _question(office: Office, page: Page) -> Page:
    """Open the form that confirms an action. It is below the row or, without JavaScript, on a separate page."""
    office.at(page, "/admin/operations/")
    page.click("a:text-is('Settled outside') >> nth=0")
    page.wait_for_selector("form.ask")
    return page


def _question_page(office: Office, page: Page) -> Page:
    office.at(page, "/admin/operations/")
    page.goto(
        office.service.base_url + (page.get_attribute("a:text-is('Send again') >> nth=0", "href") or "")
    )
    return page


def _confirm(office: Office, page: Page) -> Page:
    """Open the form that confirms an action on an order's page."""
    office.pay("to cancel")
    office.at(page, f"/admin/checkout/checkout/{office.uuids['to cancel']}/change/")
    page.click(".heading-rest form button")
    page.wait_for_selector("form.confirm")
    return page


def _in_doubt(office: Office, page: Page) -> Page:
    """Open an order whose capture is in doubt, and expand the section that has all fields."""
    uuid = office.leave_in_doubt()
    office.at(page, f"/admin/checkout/checkout/{uuid}/change/")
    page.click(".all-fields > summary")
    return page


def _orders(office: Office, page: Page) -> Page:
    """Open the list of one merchant's orders. One of the orders is three days old.

    The list is filtered, because other tests have created orders too.
    """
    office.at(page, "/admin/checkout/checkout/")
    its = page.get_attribute("tr:has-text('NF-') a[href*=merchant__exact] >> nth=0", "href")
    return office.at(page, its or "")


def _merchants(office: Office, page: Page) -> Page:
    """Open the list of merchants. The suspended merchant is the first one."""
    office.suspend()
    return office.at(page, "/admin/payments/merchant/")


def _several(office: Office, page: Page) -> Page:
    """Search for two orders that were paid with the same card."""
    office.pay("another")
    return office.at(page, "/admin/find?q=4242")


def _menu_open(office: Office, page: Page) -> Page:
    office.at(page, "/admin/operations/")
    page.set_viewport_size({"width": 375, "height": 812})
    page.click(".side-menu")
    return page


# Each page, and each state in which a page looks different, with the function that opens the page.
PAGES: dict[str, Callable[[Office, Page], Page]] = {
    "70 overview": _overview,
    "71 operations": _operations,
    "73 question, in place": _question,
    "73 question, a page": _question_page,
    "72 search": _path("/admin/find"),
    "72 search, several found": _several,
    "72 search, none match": _path("/admin/find?q=nobody"),
    "74 order": _of("/admin/checkout/checkout/{}/change/", "failed"),
    "74 order, in doubt": _in_doubt,
    "74 orders": _orders,
    "74 discrepancies": _path("/admin/payments/discrepancy/?state=open"),
    "74 merchants": _merchants,
    "75 confirm": _confirm,
    "76 menu, open on a phone": _menu_open,
}
NEEDS_SCRIPT = {"76 menu, open on a phone"}  # without JavaScript, the menu is a separate page
