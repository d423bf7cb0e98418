"""One click closes all deliveries that are too late to send. The list and the badge then no longer include them."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.desk import Desk
from tests.journeys import receiver

pytestmark = [pytest.mark.journey, pytest.mark.long]


def waiting(page: Page) -> dict[str, int]:
    """Return the number in each badge of the menu, by the first word of the menu item."""
    marked = page.locator("#side-nav a", has=page.locator(".waiting-count")).all_text_contents()
    return {place: int(number) for place, number, *_ in (words.split() for words in marked)}


def test_closing_deliveries_that_are_too_late_removes_them_from_the_list(
    desk: Desk, open_page: Callable[..., Page]
) -> None:
    merchant = desk.service.new_merchant("Two Late Tickets")
    with receiver.listening() as endpoint:
        endpoint.answer_with(500)
        endpoint.secrets = [merchant.subscribe(endpoint.url, "checkout.authorized")]
        held = [merchant.held(), merchant.held()]
        for uuid in held:
            (first,) = endpoint.awaited("checkout.authorized", uuid)[:1]
            merchant.log_of(first.event_id, length=1, within=15)  # the first attempt has failed
        ended = merchant.call("DELETE", "merchant/v1/webhooks/subscription")
    assert ended.status_code == 204  # this has parked the pending deliveries
    for uuid in held:
        merchant.advance(uuid, 121)
        merchant.awaited(uuid, "voided", within=20)

    page = desk.sign_in(open_page(), merchant)
    notice, rows = page.locator(".notice-title"), page.locator("#found .table-thing")
    desk.at(page, "/portal/deliveries?outcome=parked")
    expect(rows).to_have_count(2)
    expect(notice).to_have_text("2 parked deliveries are too late")
    assert "Deliveries" not in waiting(page), "no resend can help any more"
    page.click("button:text-is('Close them')")
    expect(notice).to_have_text("2 deliveries are closed. Closed deliveries stay in the log.")
    expect(page.locator(".notice-act")).to_have_count(0)
    desk.at(page, "/portal/deliveries?outcome=parked")
    expect(rows).to_have_count(0)
