"""Somebody's own security in a browser: every page of it, at every size, light and dark."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.access.checks import CUT, MIN_TARGET, TOO_SMALL
from tests.browser.test_gallery import LOOKED_AT, SHOTS, appear
from tests.journeys.service import Service
from tests.portal import people
from tests.waiting import wait_for

pytestmark = pytest.mark.journey
FOLDER = Path(".local") / "screenshots"
NEW = "another bill on the table"


@dataclass
class Owner:
    """A merchant's owner in a browser, who looks at each page that they come to."""

    page: Page
    base_url: str
    email: str
    password: str
    shots: Sequence[tuple[int, str]]
    seen: int = 0

    def go(self, path: str) -> None:
        self.page.goto(f"{self.base_url}{path}")

    def see(self, heading: str) -> None:
        """Fail unless this page is there, reads well at these sizes and breaks no rule of axe."""
        expect(self.page.locator("h1")).to_have_text(heading)
        self.seen += 1
        FOLDER.mkdir(parents=True, exist_ok=True)
        for width, scheme in self.shots:
            appear(self.page, width, scheme)
            self.page.wait_for_timeout(150)  # colours change in 120 ms
            kind = f"{width} {scheme}"
            if (width, scheme) in LOOKED_AT:
                name = f"security {self.seen:02} {heading.rstrip('?')} {kind}.png"
                self.page.screenshot(path=FOLDER / name, full_page=True)
                found = Axe().run(self.page)
                assert found.violations_count == 0, (kind, found.generate_report())
            assert self.page.evaluate("document.documentElement.scrollWidth") <= width, kind
            assert self.page.evaluate(CUT) == [], kind
            assert self.page.evaluate(TOO_SMALL, MIN_TARGET) == [], kind
        appear(self.page, 375, "light")

    def press(self, words: str) -> None:
        exactly = re.compile(rf"^\s*{re.escape(words)}\s*$")
        self.page.locator("main").locator("a, button", has_text=exactly).first.click()

    def log_in(self) -> None:
        self.go("/accounts/login/")
        self.page.fill("#login", self.email)
        self.page.fill("#password", self.password)
        self.press("Log in")

    def log_out(self) -> None:
        self.page.context.clear_cookies()

    def open_mail(self, subject: str) -> None:
        """Open the mail, as soon as a worker has sent it."""
        mine = self.page.locator(".mails li", has_text=self.email).get_by_role("link", name=subject)

        def is_there() -> bool:
            self.go("/mail")
            return mine.count() > 0

        wait_for(is_there)
        mine.first.click()


@pytest.fixture(
    params=[
        pytest.param(((375, "light"),), id="on a phone"),
        pytest.param(SHOTS, id="at every size", marks=pytest.mark.long),
    ]
)
def owner(service: Service, open_page: Callable[..., Page], request: pytest.FixtureRequest) -> Owner:
    email = f"owner-{uuid4().hex}@acme.example"
    made = json.loads(service.command("create_merchant", "Acme Tickets", "--email", email, "--json"))
    return Owner(open_page(), service.base_url, email, made["portal_password"], request.param)


def set_up_app(owner: Owner) -> str:
    """Come in, set up an authenticator app, keep the recovery codes; return the app's secret."""
    owner.log_in()
    owner.go("/portal/security")
    owner.press("Set up an app")
    owner.page.fill("#code", "000000")
    owner.press("Set it up")
    owner.see("Set up your authenticator app")
    secret = owner.page.inner_text("#setup-key")
    owner.page.fill("#code", people.code(secret))
    owner.press("Set it up")
    return secret


@pytest.mark.long
def test_an_app_is_set_up_asked_for_and_removed(owner: Owner) -> None:
    owner.go("/accounts/login/")
    owner.see("Log in")
    owner.page.fill("#login", owner.email)
    owner.page.fill("#password", "wrong")
    owner.press("Log in")
    owner.see("Log in")
    secret = set_up_app(owner)
    owner.see("Your recovery codes")
    assert owner.page.locator(".recovery-codes li").count() == 10
    owner.press("I have kept them")
    owner.see("Your security")
    owner.log_out()
    owner.log_in()
    owner.page.fill("#code", "000000")
    owner.press("Log in")
    owner.see("Enter the code of your app")
    owner.page.fill("#code", people.code(secret, later=1))
    owner.press("Log in")
    owner.page.wait_for_url("**/portal")
    owner.go("/portal/security")
    owner.see("Your security")
    expect(owner.page.locator(".sessions li")).to_have_count(2)
    owner.press("End all others")
    expect(owner.page.locator(".sessions li")).to_have_count(1)
    owner.press("Make new ones")
    owner.see("Make new recovery codes?")
    owner.go("/portal/security")
    owner.press("Remove it")
    owner.see("Remove your authenticator app?")
    owner.press("Remove it")
    expect(owner.page.get_by_text("Your authenticator app is removed.")).to_be_visible()
    owner.go("/accounts/reauthenticate/?next=/portal")
    owner.see("Confirm that it is you")


@pytest.mark.long
def test_a_password_is_changed_and_reset_by_mail(owner: Owner) -> None:
    owner.log_in()
    owner.go("/accounts/password/change/")
    owner.page.fill("#oldpassword", owner.password)
    owner.page.fill("#password1", "short")
    owner.page.fill("#password2", "short")
    owner.press("Change it")
    owner.see("Change your password")
    owner.log_out()
    owner.go("/accounts/login/")
    owner.press("Forgot it?")
    owner.see("Reset your password")
    owner.page.fill("#email", owner.email)
    owner.press("Mail me the link")
    owner.see("Look at your mail")
    owner.go("/mail")
    owner.see("Mails of this machine")
    owner.open_mail("Choose a new password")
    owner.see("[Sandbox] Choose a new password")
    link = owner.page.locator(".mail-text a[href*='/key/']").get_attribute("href") or ""
    owner.page.click(f".mail-text a[href='{link}']")
    owner.see("Choose a new password")
    owner.page.fill("#password1", NEW)
    owner.page.fill("#password2", NEW)
    owner.press("Save the new password")
    owner.see("Your password is new")
    owner.page.goto(link)
    owner.see("This link has ended")


@pytest.mark.long
def test_a_code_by_mail_lets_in_after_fifty_wrong_passwords(owner: Owner, service: Service) -> None:
    service.command("shell", "--command", FIFTY.format(email=owner.email))
    owner.log_in()
    owner.see("Log in")
    owner.press("Log in with a code by e-mail")
    owner.see("Enter the code")
    owner.open_mail("Your code to log in")
    code = owner.page.locator(".mail-text").inner_text().split()[5]
    owner.go("/accounts/login/")
    expect(owner.page.locator("h1")).to_have_text("Enter the code")
    owner.page.fill("#code", code)
    owner.press("Log in")
    owner.page.wait_for_url("**/portal")
    owner.log_out()
    owner.go("/accounts/login/code/")
    owner.see("Log in with a code by e-mail")
    owner.go("/accounts/inactive/")
    owner.see("This account is closed")


FIFTY = """
from portal.accounts import login_limits
for number in range(50):
    login_limits.spend("password", account="{email}", address=f"10.0.1.{{number}}")
"""
