"""Every page and state at every size, and in every theme and language. `make screenshots` saves the pictures."""

import html
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.browser import gallery
from tests.browser import office as offices
from tests.browser.access import checks
from tests.browser.access.checks import CUT, MIN_TARGET, TOO_SMALL
from tests.browser.brand import states as branded
from tests.browser.desk import NEEDS_SCRIPT, PAGES, Desk
from tests.browser.gallery import Stage
from tests.browser.office import Office
from tests.browser.together import item_states, pledge_states, returning, states, texts
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]

STATES = (
    gallery.STATES
    | branded.STATES
    | texts.STATES
    | states.STATES
    | pledge_states.STATES
    | item_states.STATES
    | returning.STATES
)
FOLDER = Path(".local") / "screenshots"
SHOTS = ((320, "light"), (375, "light"), (375, "dark"), (1280, "light"), (1280, "dark"), (1920, "light"))
LOOKED_AT = ((375, "light"), (375, "dark"), (1280, "light"), (1280, "dark"))
LANGUAGES = ("en-GB", "de-DE", "es-ES", "fr-FR", "it-IT", "nl-NL")
# The sizes and themes for languages other than English. Only the texts differ there, so fewer pictures are enough.
ELSEWHERE = ((320, "light"), (375, "light"), (1280, "light"))
LONGEST, TWICE = "de-DE", 188


@pytest.fixture(scope="module")
def sheets(browser: Browser) -> Iterator[list[tuple[str, str]]]:
    """Yield a list to which tests add the (kind, name) of each picture that they take.

    At the end, write one overview for each kind (language, width, theme), with all pictures of this kind.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    taken: list[tuple[str, str]] = []
    yield taken
    for kind in sorted({kind for kind, _ in taken}):
        _write_sheet(browser, kind, [name for its, name in taken if its == kind])


def _write_sheet(browser: Browser, kind: str, names: list[str]) -> None:
    width = min(480, int(kind.split()[1]))
    figures = "".join(
        f'<figure><figcaption>{html.escape(name)}</figcaption><img width="{width}" '
        f'src="{(FOLDER / f"{name} {kind}.png").resolve().as_uri()}"></figure>'
        for name in names
    )
    sheet = FOLDER / f"sheet {kind}.html"
    style = "body{font:14px sans-serif;background:#999;display:flex;flex-wrap:wrap;gap:16px}figure{margin:0}"
    sheet.write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style>{figures}")
    page = browser.new_page(viewport={"width": 2400, "height": 1000})
    page.goto(sheet.resolve().as_uri())
    page.screenshot(path=sheet.with_suffix(".png"), full_page=True)
    page.close()


@pytest.fixture(scope="module")
def take(sheets: list[tuple[str, str]]) -> Callable[[Page, str, str], None]:
    """Return a function that saves a picture of a page and adds it to `sheets`."""

    def taking(page: Page, name: str, kind: str) -> None:
        page.screenshot(path=FOLDER / f"{name} {kind}.png", full_page=True)
        sheets.append((kind, name))

    return taking


def appear(page: Page, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 812})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_state_reads_well(
    service: Service,
    open_page: Callable[..., Page],
    take: Callable[[Page, str, str], None],
    language: str,
    name: str,
) -> None:
    stage = Stage(service, lambda **options: open_page(may_fail=True, locale=language, **options))
    page = STATES[name](stage)
    look(page, take, name, language[:2])
    if language == LONGEST:
        has_room_for_letters_of_twice_the_size(page)
    checks.all_is_well(page)


def has_room_for_letters_of_twice_the_size(page: Page) -> None:
    """Fail if the page cuts off a word or is too wide at half a phone's width.

    Letters of twice the size need this room.
    """
    appear(page, TWICE, "light")
    page.wait_for_timeout(50)
    assert page.evaluate("document.documentElement.scrollWidth") <= TWICE
    assert page.evaluate(CUT) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_portal_reads_well(
    desk: Desk, open_page: Callable[..., Page], take: Callable[[Page, str, str], None], name: str
) -> None:
    page = PAGES[name](desk, desk.sign_in(open_page(may_fail=True)))
    assert page.title().startswith("TEST · ")
    look(page, take, name, "en")
    checks.all_is_well(page)


@pytest.mark.parametrize("name", offices.PAGES)
def test_a_page_of_the_operators_reads_well(
    office: Office, open_page: Callable[..., Page], take: Callable[[Page, str, str], None], name: str
) -> None:
    page = offices.PAGES[name](office, office.sign_in(open_page(may_fail=True)))
    assert page.title().startswith("TEST · ")
    look(page, take, name, "en")


def look(page: Page, take: Callable[[Page, str, str], None], name: str, language: str) -> None:
    """Take pictures of a page at every size and in every theme.

    Fail if an element is cut off, too small or too wide, or if axe finds a fault.
    """
    for width, scheme in SHOTS if language == "en" else ELSEWHERE:
        appear(page, width, scheme)
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_timeout(50)
        kind = f"{language} {width} {scheme}"
        take(page, name, kind)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, kind
        assert page.evaluate(CUT) == [], kind
        assert page.evaluate(TOO_SMALL, MIN_TARGET) == [], kind
        if language == "en" and (width, scheme) in LOOKED_AT:
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("name", STATES)
def test_a_state_is_reached_without_script(
    service: Service, open_page: Callable[..., Page], take: Callable[[Page, str, str], None], name: str
) -> None:
    stage = Stage(service, lambda **options: open_page(may_fail=True, java_script_enabled=False, **options))
    page = STATES[name](stage)
    for width, scheme in LOOKED_AT:
        appear(page, width, scheme)
        take(page, name, f"noscript {width} {scheme}")
        for control in page.locator("main :is([data-copy], [data-share], [data-step], #print)").all():
            assert not control.is_visible(), "it would do nothing"


@pytest.mark.parametrize("name", [name for name in PAGES if name not in NEEDS_SCRIPT])
def test_a_page_of_the_portal_works_without_script(
    desk: Desk, open_page: Callable[..., Page], take: Callable[[Page, str, str], None], name: str
) -> None:
    page = PAGES[name](desk, desk.sign_in(open_page(may_fail=True, java_script_enabled=False)))
    for width, scheme in LOOKED_AT:
        appear(page, width, scheme)
        take(page, name, f"noscript {width} {scheme}")
        for control in page.locator("[data-copy]").all():
            assert not control.is_visible(), "it would do nothing"


@pytest.mark.parametrize("name", [name for name in offices.PAGES if name not in offices.NEEDS_SCRIPT])
def test_a_page_of_the_operators_works_without_script(
    office: Office, open_page: Callable[..., Page], take: Callable[[Page, str, str], None], name: str
) -> None:
    page = offices.PAGES[name](office, office.sign_in(open_page(may_fail=True, java_script_enabled=False)))
    for width, scheme in LOOKED_AT:
        appear(page, width, scheme)
        take(page, name, f"noscript {width} {scheme}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
