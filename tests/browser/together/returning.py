"""Gallery states: a remembered browser, an ended sign-in, a refused split, and pages without an order."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.gallery import Stage, numbers, split
from tests.browser.order import Order

SIGNED_OUT = """
import time
from unittest import mock
from django.core import signing
from hosted_page import payer
from hosted_page.models import PayerSignIn
sign_in = PayerSignIn.objects.get(subject="{checkout}")
with mock.patch("time.time", return_value=time.time() - payer.LIFE - 60):
    print(signing.dumps([sign_in.subject.hex, sign_in.pk.hex], salt=payer.SALT))
"""
STOP = """
from hosted_page.sms import outbox, stopped_numbers
print(stopped_numbers.stop_link(outbox.number_digest("{number}")))
"""
FAULT = """
from payments.models import Merchant
from portal.models import ApiClient
merchant = ApiClient.objects.get(client_id="{client_id}").merchant_id
Merchant.objects.filter(pk=merchant).update(time_zone="{zone}")
"""


def printed(stage: Stage, code: str) -> str:
    """Run Python code in a shell of the service, and return its output."""
    return stage.service.command("shell", "--no-imports", "-c", code).strip()


def _remember(stage: Stage, page: Page) -> Page:
    page.goto(stage.order().url)
    stage.ask_for_code(page)
    page.check("#remember")
    page.fill("#code", page.inner_text(".notice code"))
    page.click("button.button-main")
    expect(page.locator(".all-mine")).to_be_visible()
    return page


def _remembered(stage: Stage) -> Page:
    page = _remember(stage, stage.open_page())
    page.goto(stage.order().url)
    expect(page.locator(".remembered")).to_be_visible()
    return page


def _remembered_mate(stage: Stage) -> Page:
    page = stage.mate_at_pay_link()
    link = page.url
    _remember(stage, page).goto(link)
    expect(page.locator(".remembered")).to_be_visible()
    return page


def _signed_out(stage: Stage) -> Page:
    """Show the page of a payer whose sign-in ended after 15 minutes without activity."""
    order = stage.order()
    page = stage.at_the_split(order)
    page.check("#split-equal")
    page.fill("#people", "4")
    page.fill("#your-name", "Lea")
    old = printed(stage, SIGNED_OUT.format(checkout=order.checkout_uuid))
    name = f"payer_{order.checkout_uuid.replace('-', '')}"
    page.context.add_cookies([{"name": name, "value": old, "url": stage.service.base_url}])
    page.click("#continue")
    expect(page.locator(".split-kept")).to_be_visible()
    return page


def _split_refused(stage: Stage) -> Page:
    """Submit an invalid split without the checks of the page's script, and show the error from the server."""
    page = stage.at_the_split()
    split(page, 3)
    page.fill("#amount-2", "100")
    page.fill("#your-name", "")
    page.locator("form.split").evaluate("form => form.submit()")
    expect(page.locator(".notice.tone-stop")).to_be_visible()
    return page


def _stop(stage: Stage) -> Page:
    number = f"+447400{next(numbers)}"
    page = stage.open_page()
    page.goto(printed(stage, STOP.format(number=number)))
    return page


def _stopped(stage: Stage) -> Page:
    page = _stop(stage)
    page.click("main .button-main")
    expect(page.locator("main [name=again]")).to_be_visible()
    return page


def _our_fault(stage: Stage) -> Page:
    """Show a mate's page that fails, because the merchant's time zone is invalid."""
    order = Order(stage.service, stage.merchant, stage.merchant.create())
    page = stage.mate_at_pay_link(order)
    client_id = stage.merchant.credentials.client_id
    try:
        stage.service.command("shell", "-c", FAULT.format(client_id=client_id, zone="Nowhere"))
        page.reload()
    finally:
        stage.service.command("shell", "-c", FAULT.format(client_id=client_id, zone="UTC"))
    expect(page.locator("main.message")).to_be_visible()
    return page


STATES: dict[str, Callable[[Stage], Page]] = {
    "43 known here": _remembered,
    "43 known here, a mate": _remembered_mate,
    "44 signed out, the split kept": _signed_out,
    "45 split, refused by the server": _split_refused,
    "46 no more texts": _stop,
    "46 no more texts, stopped": _stopped,
    "48 our fault": _our_fault,
}
