"""To change a row in the admin, an operator needs a fresh proof of identity. The change continues after the proof."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from checkout.models import Checkout
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Merchant, Switch
from portal.models import User
from tests import factories
from tests.portal import people
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db
MERCHANTS = "/admin/payments/merchant/"
PASSWORD_PAGE = "/accounts/reauthenticate/"
CODE_PAGE = "/accounts/2fa/reauthenticate/"
LONG_AGO = 301


@pytest.fixture
def olga(client: Client) -> User:
    """Return an operator whose last proof of identity is more than five minutes old."""
    olga = people.operate(client, User.objects.create_superuser("olga@operators.example", people.PASSWORD))
    people.prove(client, olga, ago=LONG_AGO)
    return olga


def chosen(action: str, row: object, **more: str) -> dict[str, str]:
    return {"action": action, "_selected_action": str(row), **more}


class TestEveryChange:
    @pytest.mark.rule("operator.proof")
    def test_requires_a_proof_of_identity(
        self, client: Client, olga: User, acme: Merchant, held: Checkout
    ) -> None:
        reporting.report(kinds.ANOTHER_AMOUNT, acme.pk, merchant=acme)
        subscription = factories.subscribe(acme, url="http://127.0.0.1:9/", event_types=["*"]).subscription
        confirmed = {"confirmed": "1", "words": "Because"}
        posts: dict[str, dict[str, str]] = {
            MERCHANTS: chosen("suspend", acme.pk, **confirmed),
            f"{MERCHANTS}?country=GB": chosen("resume", acme.pk, **confirmed),
            "/admin/checkout/checkout/": chosen("cancel", held.pk, **confirmed),
            "/admin/payments/discrepancy/": chosen("close", Discrepancy.objects.get().pk, **confirmed),
            "/admin/webhooks/subscription/": chosen("resend_parked", subscription.pk),
            f"{MERCHANTS}{acme.pk}/change/": {"name": "Another"},
            "/admin/payments/switch/add/": confirmed,
            f"/admin/portal/user/{olga.pk}/delete/": {"post": "yes"},
            "/admin/operations/run": {"pump": "checkout.tasks.expire_due"},
        }
        for address, form in posts.items():
            with nothing_moves():
                answer = client.post(address, form)
                assert answer.status_code == 302, address
                assert answer["Location"].startswith(PASSWORD_PAGE), address
        acme.refresh_from_db()
        assert acme.name == "Acme Tickets" and not Switch.objects.exists() and User.objects.exists()
        assert Discrepancy.objects.get().closed_at is None

    def test_viewing_and_logging_out_do_not_require_it(
        self, client: Client, olga: User, acme: Merchant
    ) -> None:
        assert client.get(MERCHANTS).status_code == 200
        assert client.get(f"{MERCHANTS}{acme.pk}/change/").status_code == 200
        assert client.post("/admin/logout/").status_code == 200
        assert client.get(MERCHANTS).status_code == 302

    def test_needs_no_proof_within_five_minutes(self, client: Client, olga: User, acme: Merchant) -> None:
        people.prove(client, olga, ago=LONG_AGO - 10)
        assert "Stop Acme Tickets?" in client.post(MERCHANTS, chosen("suspend", acme.pk)).content.decode()

    def test_cannot_delete_many_rows_at_once(self, client: Client, olga: User) -> None:
        assert not [
            shown
            for shown in admin.site._registry.values()
            if "delete_selected" in shown.get_actions(client.get("/admin/").wsgi_request)
        ]


class TestProof:
    def test_by_password_restores_the_requested_action(
        self, olga: User, acme: Merchant, rival: Merchant
    ) -> None:
        client = Client(enforce_csrf_checks=True)
        people.operate(client, olga)
        people.prove(client, olga, ago=LONG_AGO)
        filtered = f"{MERCHANTS}?country__exact=GB"
        asked = post(client, filtered, chosen("suspend", acme.pk))
        page = post(client, asked["Location"], {"password": people.PASSWORD})
        assert "Stop Acme Tickets?" in page.content.decode() and "Acme Tickets" in page.content.decode()
        assert f'action="{filtered}"' in page.content.decode(), "it leads to the list, not to the proof"
        done = post(client, filtered, chosen("suspend", acme.pk, confirmed="1", words="Fraud"))
        assert (done.status_code, done["Location"]) == (302, filtered)
        assert Switch.objects.get().merchant == acme

    def test_after_the_reason_was_entered_carries_out_the_action(
        self, client: Client, olga: User, acme: Merchant
    ) -> None:
        form = chosen("suspend", acme.pk, confirmed="1", words="Fraud", from_page="1")
        asked = client.post(MERCHANTS, form)
        assert not Switch.objects.exists()
        done = client.post(asked["Location"], {"password": people.PASSWORD})
        assert (done.status_code, done["Location"]) == (303, f"{MERCHANTS}{acme.pk}/change/")
        assert Switch.objects.get().reason == "Fraud"

    def test_that_is_wrong_changes_nothing(self, client: Client, olga: User, acme: Merchant) -> None:
        asked = client.post(MERCHANTS, chosen("suspend", acme.pk, confirmed="1", words="Fraud"))
        assert client.post(asked["Location"], {"password": "wrong"}).status_code == 200
        assert not Switch.objects.exists()

    def test_for_an_invalid_form_shows_the_form_again(
        self, client: Client, olga: User, acme: Merchant
    ) -> None:
        address = f"{MERCHANTS}{acme.pk}/change/"
        asked = client.post(address, {"name": "Acme", "country": "uk"})
        page = client.post(asked["Location"], {"password": people.PASSWORD}).content.decode()
        assert "Enter a country by its two letters" in page and f'action="{address}"' in page


class TestSecondFactor:
    def test_is_the_only_proof_for_operators_who_have_one(
        self, client: Client, olga: User, acme: Merchant
    ) -> None:
        secret = people.set_up_app(olga)
        people.prove(client, olga)
        asked = client.post(MERCHANTS, chosen("suspend", acme.pk, confirmed="1", words="Fraud"))
        assert asked["Location"].startswith(CODE_PAGE)
        assert client.get(f"{PASSWORD_PAGE}?next={MERCHANTS}")["Location"].startswith(CODE_PAGE)
        client.post(PASSWORD_PAGE, {"password": people.PASSWORD})
        assert not Switch.objects.exists()
        client.post(asked["Location"], {"code": people.code(secret)})
        assert Switch.objects.get().reason == "Fraud"

    def test_of_a_login_just_now_is_proof_enough(self, olga: User, acme: Merchant) -> None:
        client, secret = Client(), people.set_up_app(olga)
        people.log_in(client, email=olga.email)
        client.post("/accounts/2fa/authenticate/", {"code": people.code(secret)})
        client.post(MERCHANTS, chosen("suspend", acme.pk, confirmed="1", words="Fraud"))
        assert Switch.objects.get().merchant == acme

    def test_of_merchants_users_is_one_of_two_proofs(self, client: Client, acme: Merchant) -> None:
        lea = people.join(acme)
        people.set_up_app(lea)
        client.force_login(lea)
        people.prove(client, lea)
        assert client.get(reverse("mfa_view_recovery_codes")).status_code == 200


def post(client: Client, address: str, form: dict[str, str]) -> Any:
    """Post a form as a browser does, with the CSRF token of the page."""
    page = client.get(MERCHANTS if address.startswith(MERCHANTS) else address).content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token
    return client.post(address, form | {"csrfmiddlewaretoken": token.group(1)})
