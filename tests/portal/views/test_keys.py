"""The portal's page for keys: a new key has a name and scopes, and its secret is shown once."""

import re

import pytest
from django.test import Client

from payments.models import Merchant
from portal import keys
from portal.models import ApiClient, AuditEntry, Role
from tests.conftest import Api
from tests.portal import stage
from tests.portal.people import get_token, secret_in

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.DEVELOPER)


class TestKey:
    def test_is_created_with_name_and_scopes_and_its_secret_is_shown_once(self, client: Client) -> None:
        page = client.post("/portal/keys/new", {"name": "Till", "scopes": ["checkouts:read"]}, follow=True)
        made = ApiClient.objects.get()
        assert (made.name, made.scopes) == ("Till", "checkouts:read")
        assert get_token(made.client_id, secret_in(page)) == 200
        words = client.get("/portal/keys").content.decode()
        assert "sk_" not in words and re.search(r"Never used\. Created\s+\d\d:\d\d\.", words)
        assert secret_in(page) not in str(AuditEntry.objects.values())

    def test_for_a_laptop_is_prefilled(self, client: Client) -> None:
        page = client.get("/portal/keys?for=laptop").content.decode()
        assert (
            re.findall(r'value="([\w:]+)" checked', page) == ["webhooks:read"] and 'value="My laptop"' in page
        )
        assert len(re.findall(r'value="[\w:]+" checked', client.get("/portal/keys").content.decode())) == 4

    @pytest.mark.parametrize(
        ("form", "words"),
        [
            ({"name": "", "scopes": "checkouts:read"}, "Give it a name"),
            ({"name": "Till"}, "Choose at least one"),
            ({"name": "Till", "scopes": "everything"}, "field-error"),
            ({"name": "x" * 61, "scopes": "checkouts:read"}, "field-error"),
        ],
    )
    def test_needs_a_name_and_scopes(self, client: Client, form: dict[str, str], words: str) -> None:
        page = client.post("/portal/keys/new", form)
        assert page.status_code == 422 and words in page.content.decode()
        assert not ApiClient.objects.exists()


@pytest.mark.rule("token.personal")
class TestKeyThatReadsCustomers:
    FORM = {"name": "Mailing list", "scopes": ["webhooks:read", "customers:read"]}

    @pytest.mark.parametrize("role", [Role.ADMIN, Role.DEVELOPER])
    def test_can_be_created_only_by_owners(self, acme: Merchant, role: Role) -> None:
        browser = stage.browser(stage.person(acme, role))
        assert "customers:read" not in browser.get("/portal/keys").content.decode()
        answer = browser.post("/portal/keys/new", self.FORM)
        assert answer.status_code == 422 and "Only an owner" in answer.content.decode()
        assert not ApiClient.objects.exists()

    def test_is_created_if_an_owner_selects_the_scope(self, acme: Merchant) -> None:
        owner = stage.browser(stage.person(acme, Role.OWNER))
        assert "customers:read" in owner.get("/portal/keys").content.decode()
        owner.post("/portal/keys/new", self.FORM)
        assert ApiClient.objects.get().scopes == "webhooks:read customers:read"

    def test_shows_its_next_secret_only_to_owners(self, acme: Merchant) -> None:
        key, secret = keys.create_client(acme, "Mailing list", self.FORM["scopes"])
        developer = stage.browser(stage.person(acme, Role.DEVELOPER))
        page = developer.post(f"/portal/keys/{key.pk}/rotate", follow=True).content.decode()
        assert "Only an owner may change a key with these scopes" in page and "sk_" not in page
        owner = stage.browser(stage.person(acme, Role.OWNER))
        page = owner.post(f"/portal/keys/{key.pk}/rotate", follow=True).content.decode()
        assert "sk_" in page and "has a new secret. Copy it now" in page.replace("\n", " ")
        assert get_token(key.client_id, secret) == 200

    def test_is_not_the_default(self, acme: Merchant, api: Api) -> None:
        key, _ = keys.create_client(acme, "Shop")
        assert "customers:read" not in key.scopes and "webhooks:read" in key.scopes
        assert api.get("events").status_code == 200


def test_the_page_says_which_environment_it_is(client: Client, settings: object) -> None:
    settings.LIVE_PORTAL_URL = "https://live.example/portal"  # type: ignore[attr-defined]
    page = client.get("/portal/keys").content.decode()
    assert "Sandbox" in page and "https://live.example/portal" in page
