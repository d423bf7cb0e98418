"""Gallery pages of a paid order: receipt by SMS, returning payer, last day of a link, dispute."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.gallery import Stage, at, numbers
from tests.browser.together.table import until


def _receipt_by_text(stage: Stage) -> Page:
    page = stage.confirmed()
    page.click(".receipt-sms button")
    return at(page, "confirmed")


def _coming_back(stage: Stage) -> Page:
    order = stage.order()
    stage.confirmed(order).context.close()
    page = stage.come(order)
    page.click("#sign-in")
    return page


def _last_day(stage: Stage) -> Page:
    order = stage.order()
    page = stage.confirmed(order, mates=3)
    page.click(".group-more > summary >> nth=0")
    line = page.locator(".group-more").first
    line.locator("details:has(input[type=tel]) > summary").click()
    line.locator("input[type=tel]").fill(f"07400 {next(numbers)}")
    line.locator("form:has(input[type=tel]) .button-ink").click()
    page.wait_for_load_state("load")
    for seconds in (10 * 86_400, 3 * 86_400 + 60):
        stage.merchant.advance(order.checkout_uuid, seconds)
    page.goto(order.url)
    expect(page.locator(".last-day button")).to_be_visible()
    return page


def _paused(stage: Stage) -> Page:
    order = stage.order()
    page = stage.confirmed(order, mates=3)
    order.be_disputed()
    return until(page, ".paused")


STATES: dict[str, Callable[[Stage], Page]] = {
    "18 confirmed, the receipt by text": _receipt_by_text,
    "18 confirmed, whoever paid comes back": _coming_back,
    "21 confirmed, the links' last day": _last_day,
    "21 confirmed, a bank looks into it": _paused,
}
