import json
from io import StringIO

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client

from checkout.models import Checkout
from config.lib.admin.readonly import ReadOnlyAdmin
from payments.models import Merchant
from portal.models import AuditEntry, Membership, User
from tests.portal import people

pytestmark = pytest.mark.django_db
OURS = ("payments", "bank", "webhooks", "checkout", "hosted_page", "portal")


def create_merchant(*args: str) -> str:
    printed = StringIO()
    call_command("create_merchant", *args, stdout=printed)
    return printed.getvalue()


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


class TestPortal:
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

    def test_wants_a_person_who_belongs_to_a_merchant(self) -> None:
        assert Client().get("/portal").status_code == 302
        client = Client()
        client.force_login(User.objects.create_user("nobody@example.com"))
        assert client.get("/portal").status_code == 403

    def test_nobody_signs_up_by_themselves(self) -> None:
        Client().post("/accounts/signup/", {"email": "new@example.com", "password1": "long-enough-password"})
        assert not User.objects.exists()

    def test_a_wrong_password_stays_outside(self) -> None:
        create_merchant("Acme", "--email", "owner@acme.example")
        answer = Client().post("/accounts/login/", {"login": "owner@acme.example", "password": "wrong"})
        assert answer.status_code == 200 and "alert" in answer.content.decode()

    @pytest.mark.rule("portal.audit")
    def test_the_audit_log_is_append_only(self, acme: Merchant) -> None:
        AuditEntry.objects.create(merchant=acme, action="test")
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            AuditEntry.objects.all().delete()


class TestAdmin:
    def test_knows_every_model(self) -> None:
        missing = [
            model
            for label in OURS
            for model in apps.get_app_config(label).get_models()
            if not admin.site.is_registered(model)
        ]
        assert missing == []

    def test_shows_money_and_history_and_changes_none(self) -> None:
        writable = {
            type(shown).__name__
            for shown in admin.site._registry.values()
            if not isinstance(shown, ReadOnlyAdmin)
        }
        assert writable == {
            "MerchantAdmin",
            "SwitchAdmin",
            "UserAdmin",
            "MembershipAdmin",
            "GroupAdmin",
        }

    def test_opens_every_list_and_row(self, captured: Checkout) -> None:
        client = Client()
        people.operate(client)
        for model in admin.site._registry:
            base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
            assert client.get(base).status_code == 200, base
            row = model._default_manager.first()
            if row is not None:
                assert client.get(f"{base}{row.pk}/change/").status_code == 200, base

    def test_never_shows_a_secret(self, captured: Checkout) -> None:
        client = Client()
        people.operate(client)
        assert captured.payment is not None and captured.lead is not None
        shown = client.get(f"/admin/payments/payment/{captured.payment.pk}/change/").content.decode()
        assert captured.payment.card_token not in shown
        shown = client.get(f"/admin/checkout/customer/{captured.lead.pk}/change/").content.decode()
        assert captured.lead.phone not in shown


def test_a_browser_finds_an_icon_beside_json() -> None:
    assert Client().get("/favicon.ico")["Location"] == "/static/img/favicon.svg"
