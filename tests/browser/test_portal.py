"""Tasks of merchants in the portal, in a browser, with and without JavaScript."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.desk import Desk

pytestmark = pytest.mark.journey
WITH_AND_WITHOUT = [
    pytest.param(True, id="with script"),
    pytest.param(False, id="without script", marks=pytest.mark.long),
]


class TestRefund:
    @pytest.mark.parametrize("has_script", WITH_AND_WITHOUT)
    def test_is_followed_until_it_is_settled(
        self, desk: Desk, owner: Callable[..., Page], has_script: bool
    ) -> None:
        desk.receiver.answer = desk._capture
        name = f"refund {has_script}"
        desk.merchant.awaited(desk.pay(name), "captured", within=20)
        page = desk.at(owner(java_script_enabled=has_script), f"/portal/checkouts/{desk.uuids[name]}")
        page.click("a:has-text('Refund £95.50')")
        page.fill("#reason", "Show moved")
        page.click("[value=check]")
        expect(page.locator(".ask")).to_contain_text("Step 2 of 2")
        page.click("button:has-text('Refund £95.50')")
        expect(page.locator(".heading .badge")).to_have_text(re.compile("Refunding|Refunded"))
        expect(page.locator(".heading .badge")).to_have_text("Refunded", timeout=20_000)
        expect(page.locator(".timeline")).to_contain_text("By " + desk.merchant.owner[0])

    @pytest.mark.long
    def test_update_after_a_field_was_resized_logs_no_error(
        self, desk: Desk, owner: Callable[..., Page]
    ) -> None:
        """The browser writes the new size into the field's style attribute. An update of the page must not copy it."""
        desk.receiver.answer = desk._capture
        uuid = desk.pay("resized")
        desk.merchant.awaited(uuid, "captured", within=20)
        page = owner()
        desk.merchant.refund(uuid)
        desk.at(page, f"/portal/checkouts/{uuid}")
        expect(page.locator(".heading .badge")).to_have_text("Refunding")
        page.evaluate("document.querySelector('#text').style.height = '200px'")
        expect(page.locator(".heading .badge")).to_have_text("Refunded", timeout=20_000)

    BOXES = """[...document.querySelectorAll(".actions-step > *")].map(it => it.getBoundingClientRect())
      .map(box => [box.left, box.top + scrollY, box.right, box.bottom + scrollY])"""

    @pytest.mark.parametrize("width", [320, 375, 1280])
    def test_button_is_never_where_the_first_tap_of_a_double_tap_was(
        self, desk: Desk, owner: Callable[..., Page], width: int
    ) -> None:
        page = desk.at(owner(), f"/portal/checkouts/{desk.uuids['split']}/refund")
        page.set_viewport_size({"width": width, "height": 812})
        tapped, _ = page.evaluate(self.BOXES)
        page.click("[value=check]")
        expect(page.locator(".ask")).to_contain_text("Step 2 of 2")
        back, refunds = page.evaluate(self.BOXES)
        assert back[:3] == tapped[:3] and back[3] >= tapped[3], "there it goes back"
        assert refunds[0] >= tapped[2], "beside it at any height, whatever else has come or gone above"
        page.mouse.click((tapped[0] + tapped[2]) / 2, (tapped[1] + tapped[3]) / 2 - page.evaluate("scrollY"))
        expect(page.locator(".ask")).to_contain_text("Step 1 of 2")


@pytest.mark.long
class TestFinding:
    def test_keeps_the_address_and_history_while_pages_are_turned(
        self, desk: Desk, owner: Callable[..., Page]
    ) -> None:
        page = desk.at(owner(), "/portal")
        page.click("#range-24h")
        page.wait_for_url("**/portal?range=24h")
        expect(page.locator("#range-24h")).to_have_attribute("aria-current", "true")
        assert page.evaluate("document.activeElement.id") == "range-24h", "focus stays"
        page.go_back()
        expect(page.locator("#range-7d")).to_have_attribute("aria-current", "true")

    @pytest.mark.long
    def test_filters_work_without_script(self, desk: Desk, owner: Callable[..., Page]) -> None:
        page = desk.at(owner(java_script_enabled=False), "/portal/checkouts")
        page.click("text=More filters")  # on a phone, filters are collapsed
        page.select_option("#state", "lapsed")
        page.click("button:text-is('Filter')")
        expect(page.locator(".table-checkouts tbody tr")).to_have_count(1)
        page.click(".chip")
        assert page.locator(".table-checkouts tbody tr").count() > 5

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("path", "choice"),
        [
            ("checkouts", "#state"),
            ("refunds", "#state"),
            ("deliveries", "#outcome"),
            ("requests", "#outcome"),
            ("audit", "#action"),
        ],
    )
    def test_filters_are_collapsed_on_a_phone_and_open_on_a_desktop(
        self, desk: Desk, owner: Callable[..., Page], path: str, choice: str
    ) -> None:
        page = desk.at(owner(), f"/portal/{path}")
        fold = page.locator(".filters > details > summary")
        expect(fold).to_have_text("More filters", use_inner_text=True)
        expect(page.locator("#q")).to_be_visible()
        expect(page.locator(choice)).to_be_hidden()
        fold.click()
        expect(fold).to_have_text("Fewer filters", use_inner_text=True)
        expect(page.locator(choice)).to_be_visible()
        page.reload()
        page.set_viewport_size({"width": 1280, "height": 812})
        expect(page.locator(choice)).to_be_visible()
        expect(fold).to_be_hidden()


class TestTimeline:
    @pytest.mark.long
    def test_is_copied_as_json(self, desk: Desk, owner: Callable[..., Page]) -> None:
        page = owner(permissions=["clipboard-read", "clipboard-write"])
        desk.at(page, f"/portal/checkouts/{desk.uuids['split']}")
        page.click("text=Copy as JSON")
        expect(page.locator("#toast")).to_have_text("Timeline copied")
        copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
        assert copied["checkout_uuid"] == desk.uuids["split"]

    @pytest.mark.long
    def test_opens_as_json_without_script(self, desk: Desk, owner: Callable[..., Page]) -> None:
        page = desk.at(owner(java_script_enabled=False), f"/portal/checkouts/{desk.uuids['split']}")
        page.click("text=Copy as JSON")
        page.wait_for_url("**/timeline.json")


@pytest.mark.long
class TestDeliveries:
    @pytest.mark.long
    def test_row_opens_and_closes_in_place(self, desk: Desk, owner: Callable[..., Page]) -> None:
        page = desk.at(owner(), "/portal/deliveries?outcome=failed")
        first = page.locator(".table-thing a").first
        first.click()
        opened = page.locator("tr.opened").first
        expect(opened).to_contain_text("Your endpoint answered 500")
        expect(first).to_have_attribute("aria-expanded", "true")
        first.click()
        expect(opened).to_be_hidden()

    def test_event_is_sent_again_and_arrives(self, desk: Desk, owner: Callable[..., Page]) -> None:
        # This test creates a new order. The event of the desk's order might already be delivered: an earlier test
        # can have made the endpoint succeed, and the service retries after a minute.
        desk.receiver.answer_with(500)
        desk.lose("sent again")
        page = desk.at(owner(), f"/portal/deliveries?q={desk.uuids['sent again']}&event_type=checkout.voided")
        page.goto(f"{desk.service.base_url}{page.get_attribute('.table-thing a', 'href')}")
        expect(page.locator("text=Send again now")).to_be_visible()
        desk.receiver.answer = desk._capture
        page.click("text=Send again now")
        expect(page.locator(".heading .badge")).to_be_visible()
        expect(page.locator("#opened")).to_contain_text("Your endpoint answered 200", timeout=20_000)


class TestWebhooks:
    @pytest.mark.parametrize("has_script", WITH_AND_WITHOUT)
    def test_test_event_shows_its_response_on_the_same_page(
        self, desk: Desk, owner: Callable[..., Page], has_script: bool
    ) -> None:
        desk.receiver.answer_with(202)
        page = desk.at(owner(java_script_enabled=has_script), "/portal/webhooks")
        page.click("text=Send test event")
        expect(page.locator("#answer")).to_contain_text("202 in", timeout=20_000)
        expect(page.locator("#answer")).to_contain_text("webhook.test")


@pytest.mark.long
class TestSettings:
    def test_that_are_refused_move_the_focus_to_the_error_summary(
        self, desk: Desk, owner: Callable[..., Page]
    ) -> None:
        page = desk.at(owner(may_fail=True), "/portal/settings")
        page.fill("#return_hosts", "no host!")
        page.click("text=Save settings")
        notice = page.locator(".form-errors")
        expect(notice).to_contain_text("Your changes are not saved")
        expect(notice).to_be_focused()
        assert notice.evaluate("notice => getComputedStyle(notice).outlineStyle") == "solid"
        page.click(".form-errors a")
        expect(page.locator("#return_hosts")).to_be_focused()


class TestMenu:
    def test_on_a_phone_opens_by_key_and_closes_by_escape(
        self, desk: Desk, owner: Callable[..., Page]
    ) -> None:
        page = desk.at(owner(), "/portal")
        button = page.locator(".side-menu")
        expect(page.locator("#side-nav")).to_be_hidden()
        button.focus()
        page.keyboard.press("Space")
        expect(page.locator("#side-nav")).to_be_visible()
        expect(button).to_have_text("Close")
        page.keyboard.press("Escape")
        expect(page.locator("#side-nav")).to_be_hidden()
        expect(button).to_have_text("Menu")
        assert page.evaluate("document.activeElement.className").endswith("side-menu")

    @pytest.mark.long
    def test_without_script_is_a_page(self, desk: Desk, owner: Callable[..., Page]) -> None:
        page = desk.at(owner(java_script_enabled=False), "/portal")
        page.click(".side-menu")
        page.click(".menu-page >> text=Checkouts")
        page.wait_for_url("**/portal/checkouts")


class TestCancel:
    TOPS = (
        "[...document.querySelectorAll('h1, .heading a')].map(it => it.getBoundingClientRect().top + scrollY)"
    )

    @pytest.mark.long
    def test_asks_in_place_without_moving_the_content_above(
        self, desk: Desk, owner: Callable[..., Page]
    ) -> None:
        desk.receiver.answer_with(500)
        page = desk.at(owner(), f"/portal/checkouts/{desk.pay('to cancel')}")
        before = page.evaluate(self.TOPS)
        page.focus("#cancel")
        page.keyboard.press("Enter")
        expect(page.locator("#reason")).to_be_focused()
        assert page.evaluate(self.TOPS) == before
        page.keyboard.press("Escape")
        expect(page.locator("#cancel")).to_be_focused()
        page.click("#cancel")
        page.fill("#reason", "Show is sold out")
        page.wait_for_timeout(2_500)
        expect(page.locator("#reason")).to_have_value("Show is sold out")
        page.click(".ask .button-pen")
        expect(page.locator(".heading .badge")).to_have_text("Voided")
        expect(page.locator(".timeline")).to_contain_text("Your reason: “Show is sold out”.")

    def test_is_a_page_without_script(self, desk: Desk, owner: Callable[..., Page]) -> None:
        page = desk.at(owner(java_script_enabled=False), f"/portal/checkouts/{desk.order('to end')}")
        page.click("text=Cancel the order")
        page.click("text=Back")
        page.click("text=Cancel the order")
        page.click(".ask .button-pen")
        expect(page.locator(".heading .badge")).to_have_text("Voided")


class TestQuestions:
    TOPS = """[...document.querySelectorAll("#keys-title, .rows > li > .actions > *")]
      .map(it => it.getBoundingClientRect()).map(box => [box.x, box.top + scrollY, box.width].join())"""

    @pytest.mark.parametrize("width", [375, 1280])
    def test_open_below_the_row_and_nothing_moves(
        self, desk: Desk, owner: Callable[..., Page], width: int
    ) -> None:
        page = desk.at(owner(), "/portal/keys")
        page.set_viewport_size({"width": width, "height": 812})
        first = page.evaluate(self.TOPS)
        page.click(".rows li:last-child a:has-text('Revoke')")
        expect(page.locator(".ask h3")).to_be_focused()
        assert page.evaluate(self.TOPS) == first
        page.click(".ask [data-back]")
        expect(page.locator(".ask")).to_have_count(0)
        assert page.evaluate("document.activeElement.textContent").startswith("Revoke")
        assert page.url.endswith("/portal/keys")
