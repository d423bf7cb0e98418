"""A merchant is created with a key and an owner."""

import json

import pytest
from django.core.management import CommandError
from django.test import Client

from payments.models import Merchant
from portal.models import Membership
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
    def test_refuses_what_is_no_name_or_address(self, args: tuple[str, ...]) -> None:
        with pytest.raises(CommandError):
            create_merchant(*args)
        assert not Merchant.objects.exists()

    def test_refuses_an_address_that_signs_in_already(self) -> None:
        create_merchant("Acme", "--email", "owner@acme.example")
        with pytest.raises(CommandError, match="signs in already"):
            create_merchant("Rival", "--email", "Owner@acme.example")
        assert Merchant.objects.count() == 1
