"""The preview in the settings shows a payer's page in a colour that is not saved yet."""

import html
import re

import pytest
from django.test import Client

from payments.models import Merchant
from portal.models import Role
from portal.views.settings import preview
from tests.hosted_page.logo.test_storage import show_logo
from tests.portal import stage
from tests.portal.stage import save

pytestmark = [pytest.mark.django_db, pytest.mark.rule("brand.preview")]
PART = {"hx-request": "true", "hx-target": "preview"}
PINK = {"name": "Acme Shows", "brand_colour": "#A61C59"}


client = stage.client_of(Role.ADMIN)


def framed(page: str) -> str:
    """Return the address of the page in the preview's frame."""
    (address,) = re.findall(r'<iframe class="preview-page" src="([^"]+)"', page)
    return html.unescape(address)


class TestPreview:
    def test_shows_the_saved_settings_at_first(self, client: Client) -> None:
        settings = client.get("/portal/settings")
        assert "frame-src 'self'" in settings["Content-Security-Policy"]
        frame = client.get(framed(settings.content.decode()))
        page = frame.content.decode()
        assert "Acme Tickets" in page and "/brand/1F4596.css" in page and "Text me a code" in page
        assert frame["X-Frame-Options"] == "SAMEORIGIN"
        assert "frame-ancestors 'self';" in f"{frame['Content-Security-Policy']};"
        assert "'none' 'self'" not in frame["Content-Security-Policy"]

    def test_shows_the_typed_settings(self, client: Client, acme: Merchant) -> None:
        part = client.get("/portal/settings/preview", PINK, headers=PART).content.decode()
        assert "<iframe" in part and "<main" not in part
        page = client.get(framed(part)).content.decode()
        assert "Acme Shows" in page and "/brand/A61C59.css" in page
        (sheet,) = re.findall(r'href="(/brand/[^"]+)"', page)
        assert "--brand:#A61C59;" in client.get(sheet).content.decode()
        acme.refresh_from_db()
        assert (acme.name, acme.brand_colour) == ("Acme Tickets", "#1F4596"), "nothing is saved"

    def test_opened_as_a_page_leads_to_the_settings(self, client: Client) -> None:
        assert client.get("/portal/settings/preview", PINK)["Location"] == "/portal/settings"

    def test_with_an_invalid_colour_shows_the_saved_one(self, client: Client) -> None:
        framed_page = client.get("/portal/settings/preview/page", PINK | {"brand_colour": "#A61C59\n"})
        assert framed_page.status_code == 200 and "/brand/1F4596.css" in framed_page.content.decode()

    def test_can_be_opened_by_a_button_and_keeps_typed_values(self, client: Client, acme: Merchant) -> None:
        shown = save(client, **PINK, support_url="https://acme.example/help", preview="yes")
        page = shown.content.decode()
        assert shown.status_code == 200 and "A61C59" in framed(page)
        assert 'value="Acme Shows"' in page and 'value="https://acme.example/help"' in page
        acme.refresh_from_db()
        assert acme.name == "Acme Tickets"
        wrong = save(client, brand_colour="red", preview="yes")
        assert wrong.status_code == 422 and "1F4596" in framed(wrong.content.decode())

    def test_has_the_logo(self, client: Client, acme: Merchant) -> None:
        shown = show_logo(acme)
        page = client.get(framed(client.get("/portal/settings").content.decode())).content.decode()
        assert f'class="band-logo" src="{shown.mark}"' in page

    @pytest.mark.parametrize(
        "typed",
        [
            {"brand_colour": "red;}body{display:none"},
            {"brand_colour": "#12345"},
            {"name": "", "brand_colour": ""},
            {"name": "x" * 121},
            {"name": "a\x00b"},
            {},
        ],
    )
    def test_of_invalid_values_shows_the_saved_ones(self, client: Client, typed: dict[str, str]) -> None:
        page = client.get(
            framed(client.get("/portal/settings/preview", typed, headers=PART).content.decode())
        )
        assert page.status_code == 200 and "/brand/1F4596.css" in page.content.decode()
        assert client.get("/portal/settings/preview/page", typed).status_code == 200

    def test_escapes_the_name(self, client: Client) -> None:
        page = client.get("/portal/settings/preview/page", PINK | {"name": "<script>alert(1)</script>"})
        assert "<script>alert" not in page.content.decode()

    @pytest.mark.parametrize(
        ("colour", "said"),
        [
            ("#1F4596", ""),
            ("#777777", preview.DARKENED),
            ("#FFFFFF", preview.FAINT),
            ("#FFFFC0", preview.FAINT),
            ("#000000", ""),
        ],
    )
    def test_explains_how_a_colour_is_adjusted(self, client: Client, colour: str, said: str) -> None:
        part = client.get("/portal/settings/preview", {"brand_colour": colour}, headers=PART).content.decode()
        assert (said in part) if said else ("notice" not in part)


class TestSheet:
    @pytest.mark.parametrize("path", ["12345", "1234567", "GGGGGG", "1F4596.css%0a"])
    def test_exists_only_for_a_valid_colour(self, path: str) -> None:
        assert Client().get(f"/brand/{path}.css").status_code == 404
