"""A merchant's owner in a browser, and checks for each account page that the owner opens."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.access.checks import CUT, MIN_TARGET, TOO_SMALL
from tests.browser.test_gallery import LOOKED_AT, appear
from tests.waiting import wait_for

FOLDER = Path(".local") / "screenshots"


@dataclass
class Owner:
    """A merchant's owner in a browser. `see` checks each page that the owner opens."""

    page: Page
    base_url: str
    email: str
    password: str
    shots: Sequence[tuple[int, str]]
    seen: int = 0

    def go(self, path: str) -> None:
        self.page.goto(f"{self.base_url}{path}")

    def see(self, heading: str) -> None:
        """Fail unless the page has this heading and fits at all sizes of `shots`, and axe finds no fault."""
        expect(self.page.locator("h1")).to_have_text(heading)
        self.seen += 1
        FOLDER.mkdir(parents=True, exist_ok=True)
        for width, scheme in self.shots:
            appear(self.page, width, scheme)
            self.page.wait_for_timeout(150)  # the change of colours takes 120 ms
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
        """Wait until a worker has sent the mail, and open it."""
        mine = self.page.locator(".mails li", has_text=self.email).get_by_role("link", name=subject)

        def is_there() -> bool:
            self.go("/mail")
            return mine.count() > 0

        wait_for(is_there)
        mine.first.click()
