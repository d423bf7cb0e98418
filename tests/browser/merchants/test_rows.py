"""The portal's lists and the pages that they link to: lines of text in a row, ruled lines, and distances."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.desk import Desk

pytestmark = [pytest.mark.journey, pytest.mark.long]
LISTS = ("checkouts", "refunds", "deliveries", "requests", "audit")
# Returns how many lines of text each visible row has. Boxes that overlap in height are on the same line.
LINES = """rows => rows.filter(row => row.checkVisibility()).map(row => {
  const words = document.createTreeWalker(row, NodeFilter.SHOW_TEXT), range = document.createRange(), boxes = [];
  while (words.nextNode()) {
    if (!words.currentNode.data.trim() || !words.currentNode.parentElement.checkVisibility()) continue;
    range.selectNodeContents(words.currentNode);
    boxes.push(...range.getClientRects());
  }
  const lines = [];
  for (const box of boxes.sort((one, other) => one.top - other.top)) {
    if (!lines.length || box.top > lines.at(-1) - box.height / 2) lines.push(box.bottom);
  }
  return lines.length;
})"""
BOX = """it => { const range = document.createRange(); range.selectNodeContents(it);
  const box = range.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom]; }"""
# Finds the titles that have a colon at the start of a line.
PARTED = """titles => titles.flatMap(title => {
  const words = document.createTreeWalker(title, NodeFilter.SHOW_TEXT), range = document.createRange(), places = [];
  while (words.nextNode()) for (let at = 0; at < words.currentNode.length; at++) {
    range.setStart(words.currentNode, at);
    range.setEnd(words.currentNode, at + 1);
    places.push([words.currentNode.data[at], range.getBoundingClientRect().top]);
  }
  return places.filter(([letter, top], at) => letter === ":" && top > places[at - 1][1] + 2).map(() => title.innerText);
})"""


@pytest.fixture
def page(desk: Desk, open_page: Callable[..., Page]) -> Page:
    return desk.sign_in(open_page())


def box(page: Page, where: str) -> Any:
    """Return the left, top, right and bottom edges of the text."""
    return page.locator(where).first.evaluate(BOX)


@pytest.mark.parametrize("width", [320, 375])
class TestOnAPhone:
    @pytest.mark.parametrize("path", LISTS)
    def test_a_list_begins_with_its_rule_right_below_the_filters(
        self, desk: Desk, page: Page, path: str, width: int
    ) -> None:
        page.set_viewport_size({"width": width, "height": 812})
        desk.at(page, f"/portal/{path}")
        table = page.locator("#found > .table")
        rule = table.evaluate("it => [getComputedStyle(it).borderTop, getComputedStyle(document.body).color]")
        assert rule[0] == f"1px solid {rule[1]}", "in ink"
        top = table.evaluate("it => it.getBoundingClientRect().top")
        assert 12 <= top - box(page, ".filters summary")[3] <= 24

    def test_a_log_row_takes_two_lines_or_more_if_its_text_is_long(
        self, desk: Desk, page: Page, width: int
    ) -> None:
        page.set_viewport_size({"width": width, "height": 812})
        desk.at(page, "/portal/requests")
        lines = page.locator("tbody > tr").evaluate_all(LINES)
        assert len(lines) > 10 and set(lines) == {2}
        desk.at(page, "/portal/audit")
        lines = page.locator("tbody > tr").evaluate_all(LINES)
        assert len(lines) >= 2 and max(lines) <= 4, "an address is long"
        desk.at(page, "/portal/refunds?state=settled")
        assert set(page.locator("tbody > tr").evaluate_all(LINES)) == {2}

    def test_a_split_order_says_how_many_mates_paid_and_how_much(
        self, desk: Desk, page: Page, width: int
    ) -> None:
        page.set_viewport_size({"width": width, "height": 812})
        desk.at(page, "/portal/groups")
        rows = page.locator(".table-groups tbody > tr")
        assert set(rows.evaluate_all(LINES)) == {3}
        words = rows.first.inner_text()
        assert re.search(r"\d of \d mates paid", words) and re.search(r"£\d+\.\d\d from mates", words)
        assert page.evaluate("document.documentElement.scrollWidth") == width

    def test_the_split_orders_begin_right_below_their_name(self, desk: Desk, page: Page, width: int) -> None:
        page.set_viewport_size({"width": width, "height": 812})
        desk.at(page, "/portal/groups")
        table = page.locator("#found > .table")
        assert table.evaluate("it => getComputedStyle(it).borderTopStyle") == "none", "the section has a rule"
        assert 4 <= box(page, "tbody .table-thing")[1] - box(page, "#orders-title")[3] <= 24

    def test_no_timeline_title_wraps_before_its_colon(self, desk: Desk, page: Page, width: int) -> None:
        page.set_viewport_size({"width": width, "height": 812})
        desk.at(page, f"/portal/checkouts/{desk.uuids['lost']}")
        titles = page.locator(".timeline h3")
        assert titles.evaluate_all(PARTED) == []
        assert ":" in titles.filter(has_text="checkout.authorized").first.inner_text()

    def test_the_table_of_a_chart_shows_all_days_and_its_link_stays_in_place(
        self, desk: Desk, page: Page, width: int
    ) -> None:
        page.set_viewport_size({"width": width, "height": 812})
        desk.at(page, "/portal")
        chart = page.locator(".chart", has=page.locator(".as-table")).first
        link = chart.locator(".as-table > summary")
        link.scroll_into_view_if_needed()
        before = link.bounding_box()
        link.click()
        assert chart.locator("tbody tr").count() == 7 and link.bounding_box() == before
        assert chart.locator(".scrolls").evaluate("it => it.scrollHeight <= it.clientHeight")
        assert set(chart.locator("tbody tr").evaluate_all(LINES)) == {1}

    def test_the_marks_of_a_chart_are_apart(self, desk: Desk, page: Page, width: int) -> None:
        page.set_viewport_size({"width": width, "height": 812})
        desk.at(page, "/portal")
        first, second = (
            page.locator(f".chart-field text:text-is('{words}')").bounding_box()
            for words in ("≤ 0.3 s", "1 s")
        )
        assert first and second and second["x"] - first["x"] - first["width"] >= 4, "with their halos"


class TestOnADesktop:
    def test_right_aligned_figures_have_space_before_the_next_column(self, desk: Desk, page: Page) -> None:
        page.set_viewport_size({"width": 1280, "height": 812})
        desk.at(page, "/portal/requests")
        assert box(page, "td.table-key > bdi")[0] - box(page, "td.table-amount")[2] >= 32
        assert box(page, "th.table-key")[0] == box(page, "td.table-key > bdi")[0]

    def test_both_times_of_a_refund_have_the_same_colour(self, desk: Desk, page: Page) -> None:
        page.set_viewport_size({"width": 1280, "height": 812})
        desk.at(page, "/portal/refunds?state=settled")
        colours = (
            page.locator("tbody > tr")
            .first.locator("td.table-time")
            .evaluate_all("all => all.map(it => getComputedStyle(it).color)")
        )
        assert len(colours) == 2 and len(set(colours)) == 1


@pytest.mark.parametrize("width", [320, 375, 1280])
class TestDelivery:
    def test_explains_its_button_below_it_and_separates_badge_and_sentence(
        self, desk: Desk, page: Page, width: int
    ) -> None:
        page.set_viewport_size({"width": width, "height": 812})
        desk.at(page, "/portal/deliveries?outcome=delivered")
        page.goto(f"{desk.service.base_url}{page.get_attribute('.table-thing a', 'href')}")
        button = page.locator("#opened button[aria-describedby]")
        hint = page.locator(f"#{button.get_attribute('aria-describedby')}").bounding_box()
        badge, sentence = (
            page.locator(where).first.bounding_box() for where in (".heading .badge", "#opened p")
        )
        pressed = button.bounding_box()
        assert hint and pressed and badge and sentence
        assert round(hint["y"] - pressed["y"] - pressed["height"]) == 12
        assert hint["x"] == pressed["x"]
        assert sentence["y"] - badge["y"] - badge["height"] >= 12


class TestSettings:
    def test_have_one_save_button_at_the_end_and_a_checkbox_aligned_with_its_title(
        self, desk: Desk, page: Page
    ) -> None:
        page.set_viewport_size({"width": 1280, "height": 812})
        desk.at(page, "/portal/settings")
        saves = page.locator("main .button-pen")
        assert saves.all_inner_texts() == ["Save settings"]
        bottom = saves.evaluate("it => it.getBoundingClientRect().bottom")
        fields = page.locator("main :is(.input, [type=checkbox])").evaluate_all(
            "all => all.filter(it => it.checkVisibility()).map(it => it.getBoundingClientRect().bottom)"
        )
        assert max(fields) < bottom
        tick = page.locator("[name=opt_in_enabled]").bounding_box()
        title = page.locator("#optin-title").bounding_box()
        assert tick and title and abs(tick["y"] - title["y"]) <= 4

    def test_preview_is_the_first_step_as_a_phone_shows_it_drawn_smaller(
        self, desk: Desk, page: Page
    ) -> None:
        desk.at(page, "/portal/settings")
        frame = page.frame_locator(".preview-page")
        assert frame.locator(".steps > li").all_inner_texts() == ["1 Phone", "2 Split", "3 Pay"]
        assert frame.locator(".button-main").all_inner_texts() == ["Text me a code"]
        inside = frame.locator("html").evaluate("it => it.clientWidth")
        drawn = page.locator(".preview-page").bounding_box()
        assert drawn and 360 <= inside <= 390 and drawn["width"] < 0.75 * inside
