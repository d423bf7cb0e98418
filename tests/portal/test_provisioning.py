"""A new merchant gets a key and an owner, who can log in to the portal."""

import json

import pytest
from django.core.management import CommandError
from django.test import Client

from checkout.models import Checkout
from payments.models import Merchant
from portal.models import Membership, User
from tests.portal.people import create_merchant

pytestmark = pytest.mark.django_db


class TestCreateMerchant:
    def test_makes_a_merchant_with_a_key_and_an_owner(self) -> None:
        made = json.loads(create_merchant("Acme", "--email", "owner@acme.example", "--json"))
        assert set(made) == {"merchant_uuid", "client_id", "client_secret", "portal_email", "portal_password"}
        merchant = Merchant.objects.get(pk=made["merchant_uuid"])
        assert merchant.opt_in_enabled
        assert Membership.objects.get(merchant=merchant).role == "owner"
        grant = {"grant_type": "client_credentials"} | {
            name: made[name] for name in ("client_id", "client_secret")
        }
        assert Client().post("/oauth/token", grant, content_type="application/json").status_code == 200

    @pytest.mark.parametrize("args", [("", "--email", "a@acme.example"), ("Acme", "--email", "nobody")])
    def test_refuses_an_invalid_name_or_address(self, args: tuple[str, ...]) -> None:
        with pytest.raises(CommandError):
            create_merchant(*args)
        assert not Merchant.objects.exists()

    def test_refuses_the_address_of_an_existing_user(self) -> None:
        create_merchant("Acme", "--email", "owner@acme.example")
        with pytest.raises(CommandError, match="already signs in with"):
            create_merchant("Rival", "--email", "Owner@acme.example")
        assert Merchant.objects.count() == 1


class TestTheOwner:
    def sign_in(self) -> Client:
        made = json.loads(create_merchant("Acme", "--email", "owner@acme.example", "--json"))
        client = Client()
        answer = client.post(
            "/accounts/login/", {"login": made["portal_email"], "password": made["portal_password"]}
        )
        assert (answer.status_code, answer["Location"]) == (302, "/portal")
        return client

    def test_shows_the_merchants_own_checkouts(self, unpaid: Checkout) -> None:
        page = self.sign_in().get("/portal")
        assert page.status_code == 200 and unpaid.merchant_order_id not in page.content.decode()

    def test_portal_requires_a_person_with_a_merchant(self) -> None:
        assert Client().get("/portal").status_code == 302
        client = Client()
        client.force_login(User.objects.create_user("nobody@example.com"))
        assert client.get("/portal").status_code == 403

    def test_there_is_no_sign_up(self) -> None:
        Client().post("/accounts/signup/", {"email": "new@example.com", "password1": "long-enough-password"})
        assert not User.objects.exists()

    def test_a_wrong_password_does_not_log_in(self) -> None:
        create_merchant("Acme", "--email", "owner@acme.example")
        answer = Client().post("/accounts/login/", {"login": "owner@acme.example", "password": "wrong"})
        assert answer.status_code == 200 and "alert" in answer.content.decode()
