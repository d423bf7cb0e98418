"""Lea asks her mates for their shares. Finn pays his share through the link, and Amy declines hers."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.gallery import Stage
from tests.browser.test_buying import WITH_AND_WITHOUT, Visit, heading, nothing, pay, sign_in
from tests.browser.together.pledge_states import collecting, pledged
from tests.journeys import polling
from tests.journeys.service import Service

pytestmark = pytest.mark.journey
FINNS_CARD = "5555555555554444"


@pytest.mark.parametrize("script", WITH_AND_WITHOUT)
@pytest.mark.long
def test_shares_are_asked_for_paid_and_declined(
    service: Service, open_page: Callable[..., Page], accessible: Visit, script: bool
) -> None:
    look = accessible if script else nothing
    merchant = service.new_merchant()
    checkout_uuid = merchant.create()
    lea = open_page(java_script_enabled=script)
    lea.goto(f"{service.base_url}/pay?id={checkout_uuid}")
    sign_in(lea)
    split(lea, look, script=script)
    pay(lea, "4242424242424242", look)
    heading(lea, "Held, not taken yet")
    merchant.capture(checkout_uuid)
    lea.reload()
    heading(lea, "You’re covering £90.00 for now")
    look(lea)
    lea.click("summary:has-text('More') >> nth=0")
    look(lea)
    finns, amys = (link.get_attribute("href") or "" for link in lea.locator(".link-address").all())

    finn = open_page(java_script_enabled=script)
    finn.goto(finns)
    heading(finn, "Lea is asking you for £24.00")
    look(finn)
    sign_in(finn, look)
    pay(finn, FINNS_CARD, look)
    heading(finn, re.compile("You paid £"))
    look(finn)

    amy = open_page(java_script_enabled=script)
    amy.goto(amys)
    amy.click("text=I’m not paying this")
    heading(amy, "You said no")
    look(amy)

    def has_got_it() -> bool:
        lea.reload()
        return "Back on your card" in lea.inner_text("main")

    polling.until(has_got_it, within=15, what="what Finn has paid is on Lea's card")
    heading(lea, "You’re covering £66.00 for now")
    for words in ("Said no", "Back on your card", "Amy has not been charged."):
        expect(lea.locator("main")).to_contain_text(words)
    shares = merchant.read(checkout_uuid)["shares"]
    assert shares == {"count": 2, "pledged_count": 0, "paid_count": 1, "paid_amount": 2400}
    service.prove_ledger()


@pytest.mark.long
@pytest.mark.parametrize("script", WITH_AND_WITHOUT)
def test_amounts_above_the_order_total_are_marked(
    service: Service, open_page: Callable[..., Page], accessible: Visit, script: bool
) -> None:
    stage = Stage(service, lambda **options: open_page(java_script_enabled=script, may_fail=True, **options))
    page = stage.at_the_split()
    page.check("#split-own", force=True)
    page.fill("#your-name", "Lea")
    page.fill("#amount-2", "100")
    page.click("#continue")
    notice = page.locator(".notice[role=alert]")
    expect(notice).to_contain_text("£4.50 more than the order. Reduce a share.")
    expect(notice).to_be_focused()
    blamed = page.locator("[aria-invalid=true]")
    expect(blamed).to_have_count(1)
    expect(blamed).to_have_id("amount-2")
    expect(blamed).to_have_accessible_description(re.compile("£4.50 more than the order"))
    if script:
        accessible(page)
        page.fill("#amount-2", "10")
        expect(blamed).to_have_count(0)
        assert page.locator("#amount-2").get_attribute("aria-describedby") is None


def split(page: Page, look: Visit, *, script: bool) -> None:
    """Split by amounts with two mates. The first amounts exceed the order, and are then corrected."""
    page.check("#split-own")
    page.fill("#your-name", "Lea")
    for position, (name, amount) in enumerate((("Finn", "24"), ("Amy", "80.00")), start=2):
        page.fill(f"#name-{position}", name)
        page.fill(f"#amount-{position}", amount)
    tally = page.locator("[data-tally]")
    # Without JavaScript, the server reports this error (see tests/hosted_page/steps/test_split.py).
    if script:
        expect(tally).to_contain_text("£14.00 more than the order")
        expect(page.locator(".lower")).to_be_visible()
    look(page)
    page.click("[data-add]")
    expect(page.locator("[data-row]:visible")).to_have_count(3)
    page.fill("#amount-3", "8")
    if script:
        expect(tally).to_contain_text("Adds up")
        expect(page.locator(".lower")).to_be_hidden()
        expect(page.locator("[data-left]")).to_have_text("£58.00")
    look(page)
    page.click("#continue")


@pytest.mark.rule("pledge.page")
def test_the_button_to_pay_stays_at_the_bottom_of_the_screen_and_keeps_its_size(stage: Stage) -> None:
    lead = collecting(stage)
    lead.set_viewport_size({"width": 375, "height": 812})
    before = lead.locator("#pay-now").bounding_box()
    pledged(stage, lead)
    expect(lead.locator("#pay-now.button-main")).to_be_visible()
    after = lead.locator("#pay-now").bounding_box()
    assert before and after and dict(before) == pytest.approx(dict(after), abs=1)
    assert after["y"] > 700 and after["y"] + after["height"] <= 812, "on the screen, without scrolling"
