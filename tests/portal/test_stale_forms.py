"""A page that was opened for one merchant cannot change a different merchant (rule portal.stale_forms)."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from payments.models import Merchant
from portal.models import ApiClient, CheckoutNote, Membership, Role
from tests.portal import stage
from tests.portal.people import prove
from webhooks.models import SigningSecret, Subscription

pytestmark = [pytest.mark.django_db, pytest.mark.rule("portal.stale_forms")]
TEMPLATES = Path(__file__).resolve().parents[2] / "templates" / "portal"
# Forms that do not act on a merchant: to join a team, to log out, and to choose a merchant.
OF_PEOPLE = {"join.html", "menu.html", "_menu.html", "_form_tokens.html"}


@pytest.fixture
def owner(acme: Merchant, rival: Merchant) -> Membership:
    """Return the membership of a person who owns both merchants."""
    membership = stage.person(acme, Role.OWNER)
    Membership.objects.create(merchant=rival, user=membership.user, role=Role.OWNER)
    return membership


@pytest.fixture
def client(owner: Membership) -> Client:
    return stage.browser(owner)


def choose(client: Client, merchant: Merchant) -> None:
    client.post("/portal/merchant", {"merchant": str(merchant.pk)})


def fields(page: str) -> dict[str, str]:
    """Return the hidden fields of the page's forms."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))


def endpoint(client: Client, opened: dict[str, str]) -> Any:
    form = {"url": "http://127.0.0.1:9/first-tab", "event_types": ["checkout.voided"]}
    return client.post("/portal/webhooks/endpoint", form | opened)


class TestForm:
    def test_of_another_merchant_is_refused_with_a_message(
        self, client: Client, acme: Merchant, rival: Merchant
    ) -> None:
        stage.saved(rival)
        opened = fields(client.get("/portal/webhooks").content.decode())
        choose(client, rival)
        answer = endpoint(client, opened)
        assert answer.status_code == 403
        said = answer.content.decode()
        assert "opened for another merchant" in said and "You now act for <bdi>Rival</bdi>" in said
        assert Subscription.objects.get().url == stage.URL
        choose(client, acme)
        assert endpoint(client, opened).status_code == 302
        assert Subscription.objects.filter(merchant=acme, url="http://127.0.0.1:9/first-tab").exists()

    def test_without_a_merchant_is_refused_to_a_person_with_several(self, client: Client) -> None:
        assert endpoint(client, {}).status_code == 403 and not Subscription.objects.exists()

    def test_of_a_merchant_that_the_person_has_left_is_refused(
        self, client: Client, owner: Membership, rival: Merchant
    ) -> None:
        opened = fields(client.get("/portal/webhooks").content.decode())
        owner.delete()  # now the person belongs only to the other merchant
        assert endpoint(client, opened).status_code == 403 and not Subscription.objects.exists()

    def test_names_its_merchant_if_it_has_one(self) -> None:
        """Every template with a CSRF token also names the merchant.

        A form that names no merchant is refused if the person has several merchants.
        """
        bare = {path.name for path in TEMPLATES.glob("*.html") if "{% csrf_token %}" in path.read_text()}
        assert bare == OF_PEOPLE

    def test_with_a_file_is_checked_as_well(self, client: Client, acme: Merchant, rival: Merchant) -> None:
        choose(client, rival)
        answer = client.post(
            "/portal/settings/save", stage.FORM | {"name": "Mine", "for_merchant": str(acme.pk)}
        )
        assert answer.status_code == 403
        assert set(Merchant.objects.values_list("name", flat=True)) == {"Acme Tickets", "Rival"}


class TestStoredRequest:
    def test_runs_only_for_the_merchant_that_it_was_sent_for(
        self, owner: Membership, acme: Merchant, rival: Merchant
    ) -> None:
        """While a form waits for a proof of identity, the person switches to a different merchant.

        After the proof, the form is refused and does not run for that merchant.
        """
        client = stage.browser(owner, is_fresh=False)
        owner.user.set_password("a bill on the table")
        owner.user.save()
        client.force_login(owner.user, backend="allauth.account.auth_backends.AuthenticationBackend")
        prove(client, owner.user, ago=600)
        choose(client, acme)
        form = {"name": "Mine", "scopes": "checkouts:read", "for_merchant": str(acme.pk)}
        asked = client.post("/portal/keys/new", form)
        assert "reauthenticate" in asked["Location"]
        choose(client, rival)
        done = client.post(asked["Location"], {"password": "a bill on the table"}, follow=True)
        assert done.status_code == 403 and not ApiClient.objects.exists()
        choose(client, acme)
        client.post("/portal/keys/new", form)
        assert ApiClient.objects.get().merchant == acme


class TestPart:
    """An htmx request for a part of a page, after the person has switched to a different merchant."""

    @pytest.mark.parametrize("path", ["/portal/webhooks?tested=1", "/portal/settings/preview", "/portal"])
    def test_is_not_inserted_into_another_merchants_page(
        self, client: Client, acme: Merchant, rival: Merchant, path: str
    ) -> None:
        choose(client, rival)
        part = client.get(path, headers={"HX-Request": "true", "X-Merchant": str(acme.pk)})
        assert part["HX-Refresh"] == "true" and part.content == b""

    def test_of_another_merchant_changes_nothing(
        self, client: Client, acme: Merchant, rival: Merchant
    ) -> None:
        order = stage.captured(rival)
        choose(client, rival)
        path, headers = f"/portal/checkouts/{order.pk}/notes", {"HX-Request": "true"}
        client.post(path, {"text": "They called.", "for_merchant": str(acme.pk)}, headers=headers)
        assert not CheckoutNote.objects.exists()

    def test_names_the_merchant_of_its_page(self, client: Client, acme: Merchant) -> None:
        assert f'hx-headers=\'{{"X-Merchant": "{acme.pk}"}}\'' in client.get("/portal").content.decode()


class TestSecretThatIsShownOnce:
    def test_is_shown_on_no_page_of_another_merchant(
        self, client: Client, acme: Merchant, rival: Merchant
    ) -> None:
        stage.saved(acme)
        stage.saved(rival)
        client.post("/portal/webhooks/rotate", {"for_merchant": str(acme.pk)})
        secret = SigningSecret.objects.get(subscription__merchant=acme, expires_at=None).secret
        choose(client, rival)
        assert "whsec_" not in client.get("/portal/webhooks").content.decode()
        choose(client, acme)
        assert secret in client.get("/portal/webhooks").content.decode()
