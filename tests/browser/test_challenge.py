"""The bank asks the payer to confirm a payment (3-D Secure). The payer confirms, refuses, leaves or returns."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import ConsoleMessage, Page, expect

from tests.browser.order import Order
from tests.browser.test_buying import GOOD, Visit, heading, pay, sign_in
from tests.journeys import polling

pytestmark = pytest.mark.journey
WITH_AND_WITHOUT = [
    pytest.param(True, id="with script"),
    pytest.param(False, id="without script", marks=pytest.mark.long),
]

ASKS = "4000002500003155"


@pytest.fixture
def another_tab() -> Iterator[Callable[[Page], Page]]:
    """Yield a function that opens a second tab. An error on the console of the tab fails the test."""
    complaints: list[str] = []

    def listen(line: ConsoleMessage) -> None:
        if line.type == "error":
            complaints.append(line.text)

    def opener(page: Page) -> Page:
        tab = page.context.new_page()
        tab.on("console", listen)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        return tab

    yield opener
    assert complaints == []


def go_to_the_card(page: Page, order: Order) -> None:
    page.goto(order.url)
    sign_in(page)
    page.click("text=All mine")


def go_to_the_challenge(page: Page, order: Order) -> None:
    go_to_the_card(page, order)
    pay(page, ASKS)
    heading(page, "Is this you?")


def confirm(page: Page) -> None:
    page.click("button:has-text('Confirm £90.00')")


def is_asked_for_a_card(page: Page, notice: str) -> None:
    heading(page, "Pay by card")
    expect(page.locator("[role=alert]")).to_contain_text(notice)
    expect(page.locator("[role=alert]")).to_contain_text("No money was taken.")


class TestTheAnswer:
    @pytest.mark.parametrize("script", WITH_AND_WITHOUT)
    def test_a_confirmation_holds_the_money(
        self, order: Order, open_page: Callable[..., Page], accessible: Visit, script: bool
    ) -> None:
        page = open_page(java_script_enabled=script)
        go_to_the_challenge(page, order)
        for fact in ("Sandbox Bank", "Acme Tickets", "Visa ending 3155", "£90.00", "No real money moves."):
            expect(page.locator("body")).to_contain_text(fact)
        if script:
            accessible(page)  # axe needs JavaScript
        confirm(page)
        heading(page, "Held, not taken yet")
        order.comes_to("held")
        order.merchant.capture(order.checkout_uuid)
        heading(page, "Confirmed and paid.")

    def test_a_refusal_leads_to_the_card_step_where_another_card_pays(
        self, order: Order, open_page: Callable[..., Page], accessible: Visit
    ) -> None:
        page = open_page()
        go_to_the_challenge(page, order)
        page.click("text=This is not me")
        is_asked_for_a_card(page, "You did not confirm this payment with your bank.")
        accessible(page)
        assert order.status() == "created"
        pay(page, GOOD)
        heading(page, "Held, not taken yet")
        order.comes_to("declined", "held")

    @pytest.mark.long
    def test_without_an_answer_for_ten_minutes_the_card_step_appears_automatically(
        self,
        order: Order,
        open_page: Callable[..., Page],
        another_tab: Callable[[Page], Page],
        accessible: Visit,
    ) -> None:
        page = open_page()
        go_to_the_challenge(page, order)
        tab = another_tab(page)
        tab.goto(order.url)
        heading(tab, "Confirm with your bank")
        finn = open_page()
        finn.goto(order.url)
        heading(finn, "Not confirmed yet")
        accessible(finn)
        order.grow_older(11 * 60)
        is_asked_for_a_card(tab, "You did not answer your bank in time.")
        accessible(tab)
        heading(finn, "Your mobile number")
        confirm(page)  # the payer confirms too late
        is_asked_for_a_card(page, "You did not answer your bank in time.")
        assert (order.status(), order.charges()) == ("created", ["voided"])
        pay(tab, GOOD)
        heading(tab, "Held, not taken yet")
        order.comes_to("held", "voided")


@pytest.mark.long
class TestAnotherWay:
    def test_a_payer_who_goes_back_can_pay_with_another_card(
        self, order: Order, open_page: Callable[..., Page]
    ) -> None:
        page = open_page()
        go_to_the_challenge(page, order)
        page.go_back()
        pay(page, GOOD)
        heading(page, "Held, not taken yet")
        page.go_back()  # this must not show the card form again
        heading(page, "Held, not taken yet")
        order.comes_to("held", "voided")

    def test_a_payer_who_goes_back_with_the_same_card_gets_a_new_question(
        self, order: Order, open_page: Callable[..., Page]
    ) -> None:
        page = open_page()
        go_to_the_challenge(page, order)
        given_up = page.url
        page.go_back()
        pay(page, ASKS)
        heading(page, "Is this you?")
        assert page.url != given_up
        confirm(page)
        heading(page, "Held, not taken yet")
        order.comes_to("held", "voided")

    def test_a_second_tab_leads_to_the_same_question(
        self,
        order: Order,
        open_page: Callable[..., Page],
        another_tab: Callable[[Page], Page],
        accessible: Visit,
    ) -> None:
        page = open_page()
        go_to_the_challenge(page, order)
        tab = another_tab(page)
        tab.goto(order.url)
        heading(tab, "Confirm with your bank")
        accessible(tab)
        tab.click("#confirm")
        heading(tab, "Is this you?")
        assert tab.url == page.url
        confirm(tab)
        heading(tab, "Held, not taken yet")
        confirm(page)
        heading(page, "Held, not taken yet")
        order.comes_to("held")

    def test_another_card_in_a_second_tab_before_the_answer_in_the_first(
        self, order: Order, open_page: Callable[..., Page], another_tab: Callable[[Page], Page]
    ) -> None:
        page = open_page()
        go_to_the_challenge(page, order)
        tab = another_tab(page)
        tab.goto(order.url)
        # The tap lasts so long that the page updates itself during the tap.
        tab.click("#another-card", delay=1_500)
        pay(tab, GOOD)
        heading(tab, "Held, not taken yet")
        confirm(page)
        heading(page, "Held, not taken yet")
        expect(page.locator("#status")).to_contain_text("Visa ending 4242")
        order.comes_to("held", "voided")

    def test_another_card_in_a_second_tab_after_the_answer_in_the_first(
        self, order: Order, open_page: Callable[..., Page], another_tab: Callable[[Page], Page]
    ) -> None:
        page = open_page()
        go_to_the_card(page, order)
        tab = another_tab(page)
        tab.goto(order.url)
        pay(page, ASKS)
        heading(page, "Is this you?")
        confirm(page)
        heading(page, "Held, not taken yet")
        pay(tab, GOOD)
        heading(tab, "Held, not taken yet")
        expect(tab.locator("#status")).to_contain_text("Visa ending 3155")
        order.comes_to("held")


class TestTwice:
    @pytest.mark.parametrize("script", WITH_AND_WITHOUT)
    def test_two_taps_make_one_hold(self, order: Order, open_page: Callable[..., Page], script: bool) -> None:
        page = open_page(java_script_enabled=script)
        go_to_the_card(page, order)
        heading(page, "Pay by card")
        page.fill("#number", ASKS)
        page.fill("#expiry", "08 / 49")
        page.fill("[name=code]", "123")
        page.dblclick("#pay")
        expect(page.locator("h1")).to_have_text(
            re.compile("Is this you|Confirm with your bank"), timeout=10_000
        )
        if page.inner_text("h1") == "Confirm with your bank":
            # The second request arrived before the bank had answered the first one.
            page.click("#confirm")
        heading(page, "Is this you?")
        page.dblclick("button:has-text('Confirm £90.00')")
        heading(page, "Held, not taken yet")
        if script:
            order.comes_to("held")  # the script has ignored the second tap
        else:
            polling.until(lambda: self.ended(order).count("held") == 1, within=10, what="one hold")

    def ended(self, order: Order) -> list[str]:
        """Return the states of the charges. While a charge waits for the payer's confirmation, return an empty list."""
        charges = order.charges()
        return [] if "challenged" in charges else charges


@pytest.mark.long
class TestASilentBank:
    @pytest.fixture
    def silent(self, order: Order) -> Iterator[None]:
        order.let_the_bank_fail(times=100)
        yield
        order.let_the_bank_fail(times=0)

    @pytest.mark.usefixtures("silent")
    def test_is_waited_for_and_another_card_can_be_used_after_a_minute(
        self, order: Order, open_page: Callable[..., Page], accessible: Visit
    ) -> None:
        page = open_page()
        go_to_the_card(page, order)
        pay(page, GOOD)
        heading(page, "Checking with your bank")
        accessible(page)
        order.grow_older(60)
        heading(page, "Your bank has not answered")
        accessible(page)
        order.let_the_bank_fail(times=0)
        page.click("#another-card")
        pay(page, GOOD)
        heading(page, "Held, not taken yet")
        order.comes_to("held")
