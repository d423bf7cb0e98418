"""The documentation as people read it: no code is cut off, all groups are visible, and the contents expand in place."""

from collections.abc import Callable

import pytest
from playwright.sync_api import FloatRect, Page, expect

from portal.developer_docs import downloads
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
Open = Callable[..., Page]
CUT = """() => [...document.querySelectorAll("pre")].filter(pre => pre.checkVisibility())
  .filter(pre => pre.scrollWidth > pre.clientWidth).map(pre => pre.textContent.slice(0, 80))"""
SMALLER = """() => [...document.querySelectorAll(".scroll td")].filter(cell =>
  getComputedStyle(cell).fontSize !== getComputedStyle(document.querySelector(".prose p")).fontSize).length"""
# For each line of code: its indent, its height, and the left edge of each part into which it wraps.
LINES = """id => [...document.querySelectorAll(`#${id} .line`)].filter(line => line.checkVisibility()).map(line => {
  const range = document.createRange(), words = line.textContent.search(/\\S/);
  range.selectNodeContents(line);
  const lefts = [...range.getClientRects()].map(box => Math.round(box.left));
  return {indent: words, height: line.clientHeight, lefts: [...new Set(lefts)]};
})"""
TALL = 30  # pixels; a wrapped line of code is taller than this


def opened(service: Service, open_page: Open, anchor: str = "", **options: object) -> Page:
    page = open_page(**options)
    page.goto(f"{service.base_url}/api/docs{anchor}")
    return page


def box(page: Page, words: str) -> FloatRect:
    found = page.locator(".top-way >> a", has_text=words).bounding_box()
    assert found
    return found


def tap(page: Page, at: FloatRect) -> None:
    """Click in the middle of the box. Playwright's own click would first scroll the box into view."""
    page.mouse.click(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)


class TestCode:
    @pytest.mark.parametrize("script", [True, False])
    @pytest.mark.parametrize("width", [320, 375, 1024, 1280])
    def test_is_never_cut_off_at_any_width(
        self, service: Service, open_page: Open, script: bool, width: int
    ) -> None:
        for anchor in ("", "#create_checkout", "#error-invalid_json"):
            page = opened(service, open_page, anchor, java_script_enabled=script)
            page.set_viewport_size({"width": width, "height": 812})
            for program in page.locator(".tab:visible > .fold > summary").all():
                program.click()
            assert page.locator("pre:visible").count() > 10
            assert page.evaluate(CUT) == []

    def test_continues_at_its_own_indent_or_further_when_a_line_wraps(
        self, service: Service, open_page: Open
    ) -> None:
        page = opened(service, open_page, "#create_checkout")
        expect(page.locator("#create_checkout .line").first).to_be_visible()
        broken = [line for line in page.evaluate(LINES, "create_checkout") if line["height"] > TALL]
        assert any(line["indent"] for line in broken)
        for line in broken:
            assert len(line["lefts"]) >= 2 and min(line["lefts"]) == line["lefts"][0], line

    @pytest.mark.parametrize("program", downloads.quick_starts(), ids=lambda program: program.name)
    def test_of_a_quick_start_fits_a_desktop_and_is_copied_unchanged(
        self, service: Service, open_page: Open, program: downloads.Program
    ) -> None:
        page = opened(service, open_page, permissions=["clipboard-read", "clipboard-write"])
        page.set_viewport_size({"width": 1280, "height": 812})
        page.click(f"label[for=quick-start-{program.language.lower()}]")
        page.click(f"text=Read {program.name}")
        assert [line for line in page.evaluate(LINES, "quick-start") if line["height"] > TALL] == []
        page.click(f"#quick-start .code:visible:has-text('{program.name}') >> .copy >> nth=-1")
        assert page.evaluate("navigator.clipboard.readText()") == program.code

    def test_in_tables_is_as_large_as_the_text(self, service: Service, open_page: Open) -> None:
        page = opened(service, open_page)
        assert page.locator(".scroll td").count() > 20
        assert page.evaluate(SMALLER) == 0


class TestContents:
    @pytest.mark.parametrize("script", [True, False])
    @pytest.mark.parametrize("width", [320, 375])
    @pytest.mark.parametrize("scrolled", [0, 20, 3000])
    def test_open_and_close_under_the_same_finger(
        self, service: Service, open_page: Open, script: bool, width: int, scrolled: int
    ) -> None:
        page = opened(service, open_page, java_script_enabled=script)
        page.set_viewport_size({"width": width, "height": 812})
        page.mouse.move(width / 2, 400)
        page.mouse.wheel(0, scrolled)
        page.wait_for_function(f"scrollY === {scrolled}")
        before = box(page, "Contents")
        band = page.locator(".test-band").bounding_box()
        tap(page, before)
        expect(page.locator(".contents")).to_be_visible()
        assert (box(page, "Close"), page.locator(".test-band").bounding_box()) == (before, band)
        if not scrolled:
            assert page.evaluate("document.elementFromPoint(20, 30).closest('.test-band') !== null")
        expect(page.locator(".top-way >> text=Contents")).to_be_hidden()
        tap(page, before)
        expect(page.locator(".contents")).to_be_hidden()
        assert (box(page, "Contents"), page.evaluate("scrollY")) == (before, scrolled)

    @pytest.mark.parametrize("script", [True, False])
    @pytest.mark.parametrize("size", [(1280, 812), (375, 812)])
    def test_show_every_part_and_group_in_one_window(
        self, service: Service, open_page: Open, script: bool, size: tuple[int, int]
    ) -> None:
        page = opened(service, open_page, java_script_enabled=script)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        if size[0] < 1000:
            page.click(".top-way >> text=Contents")
        heads = page.locator(".contents summary")
        expect(heads.filter(has_text="Sandbox")).to_have_count(1)
        for head in heads.all():
            expect(head).to_be_in_viewport()

    def test_collapse_after_reading_but_never_under_the_pointer(
        self, service: Service, open_page: Open
    ) -> None:
        page = opened(service, open_page)
        page.set_viewport_size({"width": 1280, "height": 812})
        start = page.locator(".contents-part", has_text="Quick start")
        page.click(".contents summary:text-is('Guide')")
        link = page.locator(".contents a[href='#signatures']")
        link.click()
        expect(link).to_have_attribute("aria-current", "location")
        expect(start).to_have_attribute("open", "")
        page.mouse.move(900, 400)
        page.mouse.wheel(0, 3000)
        expect(link).not_to_have_attribute("aria-current", "location")
        expect(start).not_to_have_attribute("open", "")
