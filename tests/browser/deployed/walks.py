"""Tests of an installation, from the demo shop to a refund. tests/browser/test_deployed.py runs them.

WALKED is the environment, sandbox or production. The installation's files and the pictures of its pages are
saved in the folder WALK_FOLDER.
"""

import itertools
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

from tests.browser import chromium
from tests.browser.accounts.device import Device
from tests.browser.deployed import installation
from tests.browser.deployed.installation import Installation
from tests.journeys import polling

KIND, FOLDER = os.environ["WALKED"], Path(os.environ["WALK_FOLDER"])
PHONE: ViewportSize = {"width": 375, "height": 812}
DESK: ViewportSize = {"width": 1280, "height": 900}
LOOKS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# The cards of the lead and of a mate. The bank asks each of them to confirm, except the mate in the sandbox.
# The sandbox has only one card with a confirmation, and the lead uses it.
CARDS = {
    "sandbox": ("4000002500003155", "4242424242424242"),
    "production": ("4000000000003220", "4000000000003055"),
}
ASKING = ("4000002500003155", "4000000000003220", "4000000000003055")


@dataclass
class Walk:
    """One installation that several browsers visit. `complaints` has the errors from the browsers' consoles."""

    kind: str
    folder: Path
    all: Installation
    browser: Browser
    complaints: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(123_400))

    @contextmanager
    def visit(self, *, script: bool = True) -> Iterator[Page]:
        context = self.browser.new_context(viewport=PHONE, java_script_enabled=script)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        try:
            yield page
        except BaseException:
            page.screenshot(path=self.folder / "failed.png", full_page=True)
            raise
        finally:
            context.close()

    def _listen(self, line: ConsoleMessage) -> None:
        if line.type == "error":
            self.complaints.append(line.text)

    def buy(self, page: Page) -> None:
        page.goto(self.all.shop_url)
        page.locator("button:has-text('Buy')").first.click()

    def sign_in(self, page: Page) -> None:
        number = str(next(self.numbers))
        page.fill("#phone", f"07400 {number}")
        page.click("text=Text me a code")
        page.wait_for_selector("#code")
        page.fill("#code", self._code(page, number))
        page.click("main button:has-text('Continue')")

    def _code(self, page: Page, number: str) -> str:
        if self.kind == "sandbox":
            return page.inner_text(".notice code")

        def sent() -> str | None:
            texts = [row.form["Body"] for row in self.all.carrier.requests if row.form["To"].endswith(number)]
            return texts[-1] if texts else None

        found = re.search(r"\d{6}", polling.until(sent, within=10, what="the code"))
        assert found, "the message has no code"
        return found[0]

    def pay(self, page: Page, number: str) -> None:
        """Enter a card in the card fields. Stripe's card fields are in a frame from another origin."""
        expect(page.locator("h1")).to_have_text(re.compile("Pay (by card|£)"), timeout=15_000)
        if self.kind == "sandbox":
            fields, names = page.locator("#card-form"), ("#number", "#expiry", "[name=code]")
        else:
            fields = page.frame_locator("#card-element iframe").locator("form")
            names = ("[name=number]", "[name=expiry]", "[name=code]")
        for name, typed in zip(names, (number, "08 / 49", "123"), strict=True):
            fields.locator(name).fill(typed)
        page.click("#card-form button:has-text('Pay £')")
        if number in ASKING:
            page.click("button:has-text('Confirm')")

    def picture(self, page: Page, name: str) -> None:
        """Take pictures of the page on a phone and on a desktop, light and dark."""
        for size, look in itertools.product((PHONE, DESK), LOOKS):
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=look)
            page.reload(wait_until="networkidle")
            page.screenshot(path=self.folder / f"{name}-{size['width']}-{look}.png", full_page=True)
        page.set_viewport_size(PHONE)
        page.emulate_media(color_scheme="light")

    def hear_from_stripe(self) -> None:
        """Let Stripe deliver its pending events. Fail unless the service accepts all of them."""
        if self.kind == "production":
            told = self.all.stripe.switch("deliver", livemode=True)
            assert told and {row["status"] for row in told} == {204}, told


@pytest.fixture(scope="module")
def walk() -> Iterator[Walk]:
    with installation.running(FOLDER, KIND) as whole, sync_playwright() as playwright:
        browser = chromium.start(playwright, f"--ignore-certificate-errors-spki-list={whole.key_hash}")
        walk = Walk(KIND, FOLDER, whole, browser)
        yield walk
        browser.close()
        assert walk.complaints == []
    assert not [path for path in FOLDER.glob("*.log") if b"Traceback" in path.read_bytes()]


def heading(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.locator("h1")).to_have_text(text, timeout=15_000)


def test_the_provider_check_finds_nothing_missing(walk: Walk) -> None:
    assert walk.all.service.command("check_provider") == "Nothing is missing. Payments can be taken.\n"


@pytest.mark.rule("portal.second_factor", "portal.passkeys")
def test_a_person_adds_a_passkey_before_anything_else_and_logs_in_with_it(walk: Walk) -> None:
    service, email = walk.all.service, "max@ferries.example"
    made = json.loads(service.command("create_merchant", "Day Ferries", "--email", email, "--json"))
    with walk.visit() as page:
        Device(page)
        page.goto(f"{service.base_url}/accounts/login/")
        page.fill("#login", email)
        page.fill("#password", made["portal_password"])
        page.click("main button:text-is('Log in')")
        for path in ("/portal", "/portal/keys", "/portal/security", "/accounts/password/change/"):
            page.goto(f"{service.base_url}{path}")
            heading(page, "Set up your authenticator app")
        walk.picture(page, "second-factor")
        page.click("text=Add a passkey instead")
        walk.picture(page, "passkey")
        page.click("main button:has-text('Add a passkey')")
        heading(page, "Your recovery codes")
        page.context.clear_cookies()
        page.goto(f"{service.base_url}/accounts/login/?next=/portal/security")
        page.click("main button:has-text('Log in with a passkey')")
        heading(page, "Your security")
        walk.picture(page, "security")


def test_a_split_order_is_paid_captured_and_refunded(walk: Walk) -> None:
    """Lea splits an order with a mate and pays it.

    The shop captures, the mate pays a share, and the shop refunds all of it.
    """
    leads, mates = CARDS[walk.kind]
    with walk.visit() as lea, walk.visit() as mate:
        walk.buy(lea)
        walk.sign_in(lea)
        lea.check("#split-equal")
        lea.fill("#people", "2")
        lea.fill("#your-name", "Lea")
        lea.click("#continue")
        heading(lea, "Pay by card")
        walk.picture(lea, "card")
        walk.pay(lea, leads)
        expect(lea.locator(".group-state")).to_contain_text("Confirmed and paid")
        walk.hear_from_stripe()
        mate.goto(lea.locator(".link-address").first.get_attribute("href") or "")
        walk.sign_in(mate)
        walk.pay(mate, mates)
        heading(mate, re.compile("You paid £"))
        lea.click(".ways-out a >> visible=true")
        heading(lea, "Your tickets are ready")
        lea.click("button:has-text('Refund')")
        heading(lea, "You have your money back")
        walk.hear_from_stripe()
        names = {cookie["name"] for cookie in lea.context.cookies(walk.all.service.base_url)}
        assert names and all(name.startswith("__Host-") for name in names), names
    walk.all.service.prove_ledger()


def test_another_card_pays_after_a_declined_one(walk: Walk) -> None:
    """After a bank has declined a card, another card pays."""
    with walk.visit() as page:
        walk.buy(page)
        walk.sign_in(page)
        page.click(".all-mine")
        walk.pay(page, "4000000000000002")
        expect(page.locator("[role=alert]").first).to_contain_text("declined")
        walk.pay(page, "4242424242424242")
        heading(page, "Confirmed and paid.")


def test_without_javascript_the_sandbox_takes_the_payment_and_stripe_shows_a_notice(walk: Walk) -> None:
    """The sandbox takes the payment. The page with Stripe's fields says that it needs JavaScript."""
    with walk.visit(script=False) as page:
        walk.buy(page)
        walk.sign_in(page)
        page.click(".all-mine")
        if walk.kind == "production":
            expect(page.locator("noscript .notice-title")).to_have_text("Paying by card needs JavaScript")
            expect(page.locator("#pay")).to_be_hidden()
            page.screenshot(path=walk.folder / "no-script.png", full_page=True)
        else:
            walk.pay(page, "4242424242424242")
            heading(page, "Confirmed and paid.")
