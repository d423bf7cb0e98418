"""The documentation in a browser: languages, search, copying and contents, with and without JavaScript."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.access.checks import CUT, MIN_TARGET, TOO_SMALL
from tests.browser.test_gallery import FOLDER, LOOKED_AT, appear
from tests.browser.test_light import Wire
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
# Links in code, and links in a sentence of a list, need no minimum size.
TOO_SMALL_ALONE = TOO_SMALL.replace(".hint", ".hint, pre, .prose li")
CUT_ALONE = CUT.replace(".spoken,", ".spoken, pre,")  # code scrolls
MAX_BYTES = 400 * 1024  # of the page with all its files, uncompressed
Open = Callable[..., Page]


def opened(service: Service, open_page: Open, **options: object) -> Page:
    page = open_page(**options)
    page.goto(f"{service.base_url}/api/docs")
    return page


class TestWithoutScript:
    @pytest.mark.rule("docs.no_script")
    def test_languages_are_chosen_and_contents_are_opened(self, service: Service, open_page: Open) -> None:
        page = opened(service, open_page, java_script_enabled=False)
        assert page.locator(".copy, .finder:visible").count() == 0
        page.click("text=Read quickstart.sh")
        expect(page.get_by_text("set -euo pipefail")).to_be_visible()
        page.click("label[for=quick-start-php]")
        expect(page.get_by_text("set -euo pipefail")).to_be_hidden()
        page.click("text=Read quickstart.php")
        expect(page.get_by_text("random_bytes")).to_be_visible()
        assert not page.locator(".contents").is_visible()
        page.click(".top-way >> text=Contents")
        page.click(".contents summary:has-text('Guide')")
        page.click(".contents a[href='#signatures']")
        assert not page.locator(".contents").is_visible()
        expect(page.locator("#signatures h2")).to_be_in_viewport()


@pytest.mark.rule("docs.folded")
class TestReference:
    @pytest.mark.parametrize("script", [True, False])
    @pytest.mark.parametrize(
        "target", ["recipe-lapse", "capture_checkout", "object-Refund", "error-not_capturable"]
    )
    def test_is_collapsed_and_a_link_expands_its_section(
        self, service: Service, open_page: Open, script: bool, target: str
    ) -> None:
        page = opened(service, open_page, java_script_enabled=script)
        within = page.locator(f"#{target} > .fold > :not(summary)").first
        assert page.locator(".fold[open]").count() == 0
        assert not within.is_visible()
        page.goto(f"{service.base_url}/api/docs#{target}")
        expect(within).to_be_visible()
        expect(page.locator(f"#{target} > .fold > summary")).to_be_in_viewport()
        page.goto(f"{service.base_url}/api/docs#main")
        page.emulate_media(media="print")
        assert page.locator("#list_checkouts > .fold > :not(summary)").first.is_visible()

    def test_section_expands_from_a_search_result_and_again_from_the_same_result(
        self, service: Service, open_page: Open
    ) -> None:
        page = opened(service, open_page)
        page.set_viewport_size({"width": 1280, "height": 812})
        page.fill("#find", "not_capturable")
        page.click("#found a[href='#error-not_capturable']")
        fold = page.locator("#error-not_capturable > .fold")
        expect(fold).to_have_attribute("open", "")
        fold.locator("> summary").click()
        expect(fold).not_to_have_attribute("open", "")
        page.fill("#find", "not_capturable")
        page.click("#found a[href='#error-not_capturable']")
        expect(fold).to_have_attribute("open", "")


class TestWithScript:
    def test_the_language_is_remembered_everywhere(self, service: Service, open_page: Open) -> None:
        page = opened(service, open_page)
        page.click("label[for=quick-start-node]")
        assert page.is_checked("#receiver-node", timeout=1000)
        page.reload()
        assert page.is_checked("#quick-start-node") and page.is_checked("#receiver-node")
        page.click("label[for=quick-start-curl]")
        assert page.is_checked("#receiver-node"), "there is no receiver in curl: the other choice stays"

    def test_the_contents_highlight_the_section_in_view(self, service: Service, open_page: Open) -> None:
        page = opened(service, open_page)
        page.set_viewport_size({"width": 1280, "height": 812})
        page.reload()
        here = page.locator(".contents [aria-current]")
        expect(here).to_have_text("Quick start")
        for anchor, folded in (("signatures", "Guide"), ("capture_checkout", "Checkouts")):
            page.click(f".contents summary:text-is('{folded}')")
            page.click(f".contents a[href='#{anchor}']")
            expect(here).to_have_attribute("href", f"#{anchor}")
            expect(here).to_be_in_viewport()

    def test_code_is_copied(self, service: Service, open_page: Open) -> None:
        page = opened(service, open_page, permissions=["clipboard-read", "clipboard-write"])
        page.click("#quick-start .copy >> nth=0")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith(f"export CHECKOUT_BASE_URL={service.base_url}\n")
        assert copied.endswith("CLIENT_SECRET='<CLIENT_SECRET>'")
        page.click(".plate .copy")
        assert page.evaluate("navigator.clipboard.readText()") == service.base_url

    @pytest.mark.parametrize(
        ("query", "target"),
        [
            ("not_capturable", "#error-not_capturable"),
            ("updated_at", ""),
            ("rotate", "#rotate_signing_secret"),
            ("timestamp_out", "#signatures"),
            ("LAPSE", "#recipe-lapse"),
            ("retry", "#receiving-events"),
            ("late capture", ""),
            ("sms code", ""),
            ("duplicate", ""),
            ("unsigned", "#signatures"),
            ("localhost", ""),
            ("timeout", ""),
            ("expired hold", ""),
            ("ngrok", "#listening-on-a-laptop"),
            ("webhook forged", "#signatures"),
            ("catch up", "#your-backend-slept-what-now"),
            ("capture window", ""),
            ("idempotency key length", "#idempotency"),
        ],
    )
    def test_the_search_finds_what_is_typed(
        self, service: Service, open_page: Open, query: str, target: str
    ) -> None:
        page = opened(service, open_page)
        page.set_viewport_size({"width": 1280, "height": 812})
        page.keyboard.press("/")
        page.keyboard.type(query)
        addresses = [link.get_attribute("href") for link in page.locator("#found a").all()]
        shown = page.inner_text("#found")
        assert "error-" not in shown and "ShellCopy" not in shown
        assert addresses and (not target or target in addresses[:5]), addresses
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(f"{re.escape(str(addresses[0]))}$"))
        expect(page.locator(".contents-all")).to_be_visible()

    def test_the_search_reports_no_result_and_escape_closes_it(
        self, service: Service, open_page: Open
    ) -> None:
        page = opened(service, open_page)
        page.keyboard.press("/")
        page.keyboard.type("<b>nothing</b>")
        expect(page.locator("#found")).to_have_text("Nothing. Try another word.")
        page.keyboard.press("Escape")
        expect(page.locator("#found")).to_be_hidden()
        page.keyboard.press("Escape")
        assert not page.locator(".contents").is_visible()

    def test_every_search_result_links_to_an_existing_place(self, service: Service, open_page: Open) -> None:
        page = opened(service, open_page)
        ids = page.evaluate("[...readEntries(NAMES), ...readSections()].map(({ id }) => id)")
        lost = page.evaluate("ids => ids.filter((id) => !document.getElementById(id))", ids)
        assert lost == [] and page.evaluate("readEntries(NAMES).length") > 400


def test_the_page_is_small_to_download(service: Service, open_page: Open) -> None:
    page = open_page()
    wire = Wire(page)
    page.goto(f"{service.base_url}/api/docs")
    page.wait_for_load_state("networkidle")
    assert 50_000 < sum(wire.sizes.values()) <= MAX_BYTES


@pytest.mark.long
@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("path", ["/api/docs", "/api/docs#contents", "/"])
def test_it_reads_well(service: Service, open_page: Open, path: str, script: bool) -> None:
    page = open_page(java_script_enabled=script)
    FOLDER.mkdir(parents=True, exist_ok=True)
    page.goto(f"{service.base_url}{path}")
    for width, scheme in LOOKED_AT:
        appear(page, width, scheme)
        name = f"66 {'documentation' if 'docs' in path else 'front'}{' contents' if '#' in path else ''}"
        picture = Path(FOLDER) / f"{name} {'en' if script else 'noscript'} {width} {scheme}.png"
        height = 812 if "#" in path else 5000  # the expanded list of contents is as high as the window
        page.screenshot(path=picture, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
        if not script:
            continue
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT_ALONE) == [], (width, scheme)
        assert page.evaluate(TOO_SMALL_ALONE, MIN_TARGET) == [], (width, scheme)
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_it_fits_with_letters_of_twice_the_size(service: Service, open_page: Open) -> None:
    page = opened(service, open_page)
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    for width in (640, 375):
        page.set_viewport_size({"width": width, "height": 812})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
