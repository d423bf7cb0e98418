"""A merchant's brand, as payers see it and as people at the merchant set it."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.desk import Desk
from tests.browser.gallery import Stage
from tests.browser.test_buying import Visit
from tests.browser.test_light import MAX_BYTES, SHIFTS, Wire
from tests.hosted_page.logo import files
from tests.journeys.merchant import Merchant

pytestmark = [pytest.mark.journey, pytest.mark.long]
PLACE = "(({x, width}) => [x, width])(document.querySelector('.band-amount').getBoundingClientRect())"
SETTINGS = "/portal/settings"


def picture(content: bytes, name: str = "logo.png") -> FilePayload:
    return {"name": name, "mimeType": "image/png", "buffer": content}


def upload(desk: Desk, page: Page, content: bytes, merchant: Merchant | None = None) -> Page:
    desk.at(desk.sign_in(page, merchant), SETTINGS)
    page.set_input_files("#logo", picture(content))
    page.click("text=Save settings")
    expect(page.locator(".logo-now img")).to_be_visible()
    return page


@pytest.mark.rule("brand.logo")
class TestOnPayersPages:
    @pytest.mark.parametrize("size", [(200, 200), (400, 80)])
    def test_the_logo_is_light_causes_no_layout_shift_and_does_not_move_the_total(
        self, stage: Stage, desk: Desk, open_page: Callable[..., Page], size: tuple[int, int]
    ) -> None:
        order = stage.order()
        places: list[Any] = []
        for is_branded in (False, True):
            if is_branded:
                upload(desk, open_page(), files.written(files.noise(size)), stage.merchant)
            page = open_page()
            wire = Wire(page)
            page.set_viewport_size({"width": 320, "height": 640})
            page.goto(order.url)
            page.wait_for_load_state("networkidle")
            assert page.locator(".band-logo").count() == is_branded
            assert wire.compressed() <= MAX_BYTES
            assert page.evaluate(SHIFTS) == 0
            places.append(page.evaluate(PLACE))
            assert page.evaluate("document.documentElement.scrollWidth") <= 320
        assert places[0] == places[1]


@pytest.mark.rule("brand.preview")
class TestSettings:
    def test_preview_follows_what_is_typed(
        self, desk: Desk, open_page: Callable[..., Page], accessible: Visit
    ) -> None:
        page = desk.at(desk.sign_in(open_page()), SETTINGS)
        frame = page.frame_locator(".preview-page")
        expect(frame.locator(".band-merchant")).to_contain_text("Acme Tickets")
        accessible(page)
        page.fill("#name", "Acme Shows")
        expect(frame.locator(".band-merchant")).to_contain_text("Acme Shows")
        page.fill("#brand_colour", "#777777")
        expect(page.locator("#preview .notice")).to_contain_text("a slightly darker colour")
        expect(frame.locator("link[href^='/brand/777777']")).to_have_count(1)
        expect(page.locator(".preview-again")).to_be_hidden()
        expect(page.locator("#name")).to_have_value("Acme Shows")
        page.reload()
        expect(frame.locator(".band-merchant")).to_contain_text("Acme Tickets")

    def test_preview_is_updated_by_a_button_without_javascript(
        self, desk: Desk, open_page: Callable[..., Page]
    ) -> None:
        page = desk.at(desk.sign_in(open_page(java_script_enabled=False)), SETTINGS)
        page.fill("#name", "Acme Shows")
        page.click("text=Preview")
        frame = page.frame_locator(".preview-page")
        expect(frame.locator(".band-merchant")).to_contain_text("Acme Shows")
        expect(page.locator("#name")).to_have_value("Acme Shows")

    def test_a_logo_can_be_uploaded_and_removed(
        self, desk: Desk, open_page: Callable[..., Page], accessible: Visit
    ) -> None:
        page = upload(desk, open_page(), files.logo("white"))
        frame = page.frame_locator(".preview-page")
        expect(frame.locator(".band-logo")).to_be_visible()
        accessible(page)
        page.set_input_files("#logo", picture(b"\0" * 300_000))
        page.click("text=Save settings")
        assert page.evaluate("document.querySelector('#logo').validationMessage") == (
            "Use a PNG or JPEG of at most 256 KB."
        ), "and nothing is sent"
        page.click("text=Remove the logo")
        expect(page.locator("main")).to_contain_text(re.compile("The logo is removed"))
        expect(frame.locator(".band-initial")).to_be_visible()
