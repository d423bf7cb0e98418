"""The file security.txt, and the policy page to which it links."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

pytestmark = pytest.mark.rule("secret.security_txt")


def fields() -> list[tuple[str, str]]:
    answer = Client().get("/.well-known/security.txt")
    assert answer.status_code == 200 and answer["Content-Type"] == "text/plain; charset=utf-8"
    return [
        (line.partition(": ")[0], line.partition(": ")[2]) for line in answer.content.decode().splitlines()
    ]


def test_it_has_the_fields_of_rfc_9116(settings: Settings) -> None:
    settings.SUPPORT_EMAIL, settings.BASE_URL = "help+us@pay.example", "https://pay.example"
    settings.CHECKOUT_PAGE_URL = "https://pay.example/pay"
    assert [field for field in fields() if field[0] != "Expires"] == [
        ("Contact", "mailto:help+us@pay.example"),
        ("Preferred-Languages", "en"),
        ("Canonical", "https://pay.example/.well-known/security.txt"),
        ("Policy", "https://pay.example/security"),
    ]


def test_it_names_each_host_of_the_service(settings: Settings) -> None:
    settings.BASE_URL, settings.CHECKOUT_PAGE_URL = "https://api.pay.example", "https://pay.example/pay"
    hosts = [value.partition("/.well")[0] for name, value in fields() if name == "Canonical"]
    assert hosts == ["https://api.pay.example", "https://pay.example"]


def test_it_never_expires_and_is_never_good_for_a_year() -> None:
    said = dict(fields())["Expires"]
    left = datetime.strptime(said, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) - datetime.now(UTC)
    assert timedelta(days=90) < left < timedelta(days=365)


@pytest.mark.parametrize("path", ["/.well-known/security.txt", "/security"])
def test_caches_can_store_it_for_a_day(path: str) -> None:
    answer = Client().get(path)
    assert set(answer["Cache-Control"].split(", ")) == {"public", "max-age=86400"} and not answer.cookies
    assert Client().post(path).status_code == 405


def test_policy_names_the_contact_and_the_limits_of_testing(settings: Settings) -> None:
    settings.SUPPORT_EMAIL = "help@pay.example"
    page = Client().get("/security").content.decode()
    assert 'href="mailto:help@pay.example"' in page and "test cards in the sandbox" in page


def test_policy_has_the_style_sheet_of_its_layout() -> None:
    page = Client().get("/security").content.decode()
    assert 'class="message"' in page and "/css/message." in page and "front-wide" not in page


def test_repository_has_the_same_policy() -> None:
    text = Path(".github/SECURITY.md").read_text()
    assert "/.well-known/security.txt" in text and "test cards in the sandbox" in text
