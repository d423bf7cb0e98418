"""Gallery states of the first steps: the phone number, whether typed or sent by the shop, and the code."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.browser.gallery import Stage

_numbers = count(800)  # must differ from the phone numbers that payers type


def _phone(stage: Stage) -> Page:
    return stage.come(stage.order())


def _phone_error(stage: Stage) -> Page:
    page = _phone(stage)
    page.fill("#phone", "12")
    page.click("button.button-main")
    return page


def _prefilled(stage: Stage) -> Page:
    number = f"+447700900{next(_numbers):03}"
    page = stage.come(stage.order(customer={"phone": number, "name": "Lea Fontaine"}))
    expect(page.locator(".remembered")).to_be_visible()
    return page


def _prefilled_refused(stage: Stage) -> Page:
    page = _prefilled(stage)
    order = page.url
    page.click("button.button-main")
    page.wait_for_selector("#code")
    page.context.clear_cookies()
    page.goto(order)
    page.click("button.button-main")
    page.wait_for_selector(".resend-wait")
    return page


def _code(stage: Stage) -> Page:
    page = _phone(stage)
    stage.ask_for_code(page)
    return page


def _code_error(stage: Stage) -> Page:
    page = _code(stage)
    right = page.inner_text(".notice code")
    page.fill("#code", "000000" if right != "000000" else "111111")
    page.click("button.button-main")
    return page


def _code_ended(stage: Stage) -> Page:
    page = _code(stage)
    right = page.inner_text(".notice code")
    for _ in range(5):
        page.fill("#code", "000000" if right != "000000" else "111111")
        page.click("button.button-main")
    expect(page.locator("#phone")).to_be_visible()
    return page


STATES: dict[str, Callable[[Stage], Page]] = {
    "01 phone": _phone,
    "02 phone, not a number": _phone_error,
    "02 phone, sent by the shop": _prefilled,
    "02 phone, sent by the shop, texted just now": _prefilled_refused,
    "03 code": _code,
    "04 code, wrong": _code_error,
    "04 code, wrong five times": _code_ended,
}
