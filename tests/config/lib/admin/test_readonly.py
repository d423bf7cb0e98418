"""The admin shows every model, but no secrets. It cannot change money or history."""

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client

from checkout.models import Checkout
from config.lib.admin.readonly import ReadOnlyAdmin
from payments.models import Merchant
from tests.portal import people

pytestmark = pytest.mark.django_db
OURS = ("payments", "bank", "webhooks", "checkout", "hosted_page", "portal")


class TestAdmin:
    def test_registers_every_model(self) -> None:
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
        assert captured.payment is not None and captured.lead is not None and captured.lead.phone
        shown = client.get(f"/admin/payments/payment/{captured.payment.pk}/change/").content.decode()
        assert captured.payment.card_token not in shown
        shown = client.get(f"/admin/checkout/customer/{captured.lead.pk}/change/").content.decode()
        assert captured.lead.phone not in shown

    def test_says_what_a_search_finds(self, acme: Merchant) -> None:
        client = Client()
        people.operate(client)
        people.join(acme)
        memberships = client.get("/admin/portal/membership/").content.decode()
        assert (
            ">User’s e-mail or merchant’s name</label>" in memberships and "A part is enough." in memberships
        )
        assert "<title>TEST · Memberships · Merchant Checkout · Operators</title>" in memberships
        assert "Search" not in client.get("/admin/webhooks/delivery/").content.decode(), "there are no rows"
        operations = client.get("/admin/payments/operation/?q=lost").content.decode()
        assert ">Operation, payment, checkout, share or refund ID</label>" in operations
        assert "The search only finds whole IDs" in operations and "Enter the whole ID." in operations
        deliveries = client.get("/admin/webhooks/delivery/?q=lost").content.decode()
        assert ">Delivery, event or checkout ID</label>" in deliveries
        people_found = client.get("/admin/portal/user/?q=lost").content.decode()
        assert (
            "Check the spelling, or enter a shorter part." in people_found and "whole IDs" not in people_found
        )
