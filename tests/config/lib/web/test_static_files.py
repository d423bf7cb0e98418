"""Pages state the digest of each script and style sheet, so that browsers load only released files."""

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command
from django.template import engines
from django.test import Client
from pytest_django.fixtures import Settings

from config.lib.web import static_files
from hosted_page.page_security import inventory
from payments.models import Merchant
from tests.portal import people

pytestmark = pytest.mark.rule("card_page.integrity")
ELEMENT = re.compile(r"<(?:script|link)\b[^>]*>")
ADDRESS = re.compile(r'(?:src|href)="/static/([^"?]+\.(?:js|css))"')
INTEGRITY = re.compile(r' integrity="(sha256-[^"]{44})"')
# Scripts of Django's admin. Django's own templates load them, so they have no integrity attribute.
FRAMEWORKS = "admin/js/"


def digest(content: bytes) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content).digest()).decode()


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Clear the cached HTML elements before and after each test, because they depend on the settings."""
    for found in (static_files.script, static_files.stylesheet):
        found.cache_clear()
    yield
    for found in (static_files.script, static_files.stylesheet):
        found.cache_clear()


@pytest.fixture
def gathered(settings: Settings, tmp_path: Path) -> Path:
    """Collect the files as `make static` does, with the storage outside local; return their folder."""
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {
        "staticfiles": {"BACKEND": "config.lib.web.static_files.HashedStaticFiles"},
    }
    call_command("collectstatic", "--no-input", "--verbosity", "0")
    return tmp_path


def loaded(page: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the integrity attribute of each static file that a page loads."""
    for element in ELEMENT.findall(page):
        if address := ADDRESS.search(element):
            integrity = INTEGRITY.search(element)
            yield address[1], integrity[1] if integrity else ""


@pytest.mark.django_db
class TestPages:
    @pytest.mark.parametrize("path", ["/", "/api/docs", "/accounts/login/", "/mail", "/security"])
    def test_name_the_digest_of_each_file(self, path: str) -> None:
        found = list(loaded(Client().get(path).content.decode()))
        assert len(found) > 1
        for name, integrity in found:
            assert integrity == digest(static_files.source_bytes(name) or b""), name

    @pytest.mark.parametrize("path", ["/admin/", "/admin/payments/merchant/"])
    def test_of_operators_name_digests_except_for_framework_scripts(self, client: Client, path: str) -> None:
        people.operate(client)
        found = [
            row for row in loaded(client.get(path).content.decode()) if not row[0].startswith(FRAMEWORKS)
        ]
        assert len(found) > 4 and all(integrity for _, integrity in found)

    def test_of_the_portal_name_digests(self, client: Client, acme: Merchant) -> None:
        people.join(acme)
        people.log_in(client)
        found = list(loaded(client.get("/portal").content.decode()))
        assert len(found) > 4 and all(integrity for _, integrity in found)


class TestCollectedFiles:
    def test_are_named_by_their_contents_and_their_own_digest(self, gathered: Path) -> None:
        for name in (
            "admin/css/widgets.css",
            "css/docs.css",
            "js/portal.js",
            "js/frame.js",
            static_files.HTMX,
        ):
            element = str(static_files.script(name) if name.endswith("js") else static_files.stylesheet(name))
            ((address, integrity),) = loaded(element)
            assert address != name and (gathered / address).exists()
            assert integrity == digest((gathered / address).read_bytes())

    def test_equal_the_source_files_if_they_are_payers_scripts(self, gathered: Path) -> None:
        """The daily check compares the scripts that payers get with the source files, byte by byte."""
        for script in inventory.SCRIPTS:
            if script.is_ours:
                assert static_files.delivered_bytes(script.name) == static_files.source_bytes(script.name)

    def test_that_are_missing_have_no_digest(self, gathered: Path) -> None:
        assert str(static_files.script("js/none.js")) == '<script src="/static/js/none.js" defer></script>'


class TestDigests:
    def test_are_computed_once_for_each_language_of_templates(self, monkeypatch: pytest.MonkeyPatch) -> None:
        counted: list[str] = []
        read = static_files.delivered_bytes

        def count(name: str) -> bytes | None:
            counted.append(name)
            return read(name)

        monkeypatch.setattr(static_files, "delivered_bytes", count)
        for _ in range(3):
            engines["django"].from_string("{% script 'js/frame.js' %}").render({})
            engines["jinja2"].from_string("{{ script('js/frame.js') }}").render({})
        assert counted == ["js/frame.js"] * 2

    def test_are_the_same_in_both_languages_of_templates(self) -> None:
        pages = {
            engines["django"]
            .from_string("{% script 'js/frame.js' %}{% stylesheet 'css/front.css' %}")
            .render({}),
            engines["jinja2"]
            .from_string("{{ script('js/frame.js') }}{{ stylesheet('css/front.css') }}")
            .render({}),
        }
        assert len(pages) == 1 and "&lt;" not in pages.pop()


def test_no_template_loads_our_files_without_a_digest() -> None:
    without = re.compile(r"<script[^>]*\bstatic\b|<link[^>]*stylesheet[^>]*\bstatic\b")
    assert [path for path in Path("templates").rglob("*.html") if without.search(path.read_text())] == []


def test_the_tests_use_unhashed_static_files() -> None:
    assert staticfiles_storage.url("js/frame.js") == "/static/js/frame.js"
