"""Every page in the table of pages, in a browser: in English and German, at the width of a phone and of a desktop.

The pages are rendered first, because Django's ORM does not work while Playwright's event loop runs. The
browser then gets the pages and their files from the test, not from a server.
"""

import mimetypes
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from csp.constants import HEADER
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import Browser, Page, Response, Route, sync_playwright

from checkout.models import Checkout
from hosted_page.status.cells import Situation
from hosted_page.status.table import TABLE
from tests.browser import chromium
from tests.browser.access.checks import CUT, MIN_TARGET, SIZES, TOO_SMALL
from tests.hosted_page.status.party import View
from tests.hosted_page.status.situations import BUILDERS, Scene

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted"), pytest.mark.long]
LANGUAGES = ("en-gb", "de")
# The addresses of the merchant's style sheet and of the QR codes. The service generates these files.
MADE = re.compile(r'(?:href|src)="(/(?:brand|pay)/[^"]+\.(?:css|svg)[^"]*)"')


@dataclass(frozen=True)
class Rendered:
    """A page as the service sends it, and the generated files that the page loads, with their types."""

    name: str
    url: str
    html: str
    headers: Mapping[str, str]
    made: Mapping[str, tuple[bytes, str]]


def render(name: str, view: View, language: str) -> Rendered:
    answer = view.read(language)
    html = answer.content.decode()
    files = {path: Client().get(path) for path in MADE.findall(html)}
    made = {path: (file.content, file["Content-Type"]) for path, file in files.items()}
    url = f"{settings.BASE_URL}{answer.wsgi_request.get_full_path()}"
    headers = {name: answer[name] for name in ("Content-Type", HEADER)}
    return Rendered(f"{name}, {language}", url, html, headers, made)


def render_all(scene: Scene) -> Iterator[Rendered]:
    """Yield the page of each viewer in each language, and the bill if the order is split."""
    views: dict[str, View] = {str(viewer): view for viewer, view in scene.views.items()}
    if scene.bill is not None:
        views["the bill"] = scene.bill
    for name, view in views.items():
        for language in LANGUAGES:
            yield render(name, view, language)


def serve(rendered: Rendered) -> Callable[[Route], None]:
    """Return a handler that answers the browser's requests. It answers a request for an update with an empty 204."""

    def answer(route: Route) -> None:
        parts = urlsplit(route.request.url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        file = (
            finders.find(parts.path.removeprefix("/static/")) if parts.path.startswith("/static/") else None
        )
        if route.request.is_navigation_request() and route.request.url == rendered.url:
            route.fulfill(body=rendered.html, headers=dict(rendered.headers))
        elif path in rendered.made:
            body, kind = rendered.made[path]
            route.fulfill(body=body, content_type=kind)
        elif file:
            kind = mimetypes.guess_type(file)[0] or "application/octet-stream"
            route.fulfill(body=Path(file).read_bytes(), content_type=kind)
        else:
            route.fulfill(status=204)

    return answer


def faults_of(page: Page, width: int) -> dict[str, Any]:
    """Return the faults of an open page at this width. If a check finds no fault, its value is falsy."""
    page.set_viewport_size({"width": width, "height": 812})
    page.wait_for_timeout(50)
    found = Axe().run(page)
    return {
        "pixels too wide": max(0, page.evaluate("document.documentElement.scrollWidth") - width),
        "cut": page.evaluate(CUT),
        "too small to touch": page.evaluate(TOO_SMALL, MIN_TARGET),
        "axe": found.generate_report() if found.violations_count else "",
    }


def is_missing(answer: Response) -> bool:
    """Return whether the page requests a style sheet, script or picture that the test does not have."""
    return answer.status != 200 and answer.request.resource_type in ("stylesheet", "script", "image", "font")


def check(browser: Browser, rendered: Rendered) -> None:
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("response", lambda answer: errors.append(answer.url) if is_missing(answer) else None)
    page.route("**/*", serve(rendered))
    page.goto(rendered.url)
    assert page.locator("main").count() == 1, rendered.name
    for width in SIZES:
        faults = {check: found for check, found in faults_of(page, width).items() if found}
        assert not faults, (rendered.name, width, faults)
    assert errors == [], rendered.name
    page.close()


@pytest.mark.rule("page.viewer", "page.language", "access.reading")
@pytest.mark.parametrize("situation", TABLE)
def test_each_page_of_a_situation_reads_well(unpaid: Checkout, situation: Situation) -> None:
    pages = list(render_all(BUILDERS[situation](unpaid)))
    with sync_playwright() as playwright:
        browser = chromium.start(playwright)
        for rendered in pages:
            check(browser, rendered)
        browser.close()
