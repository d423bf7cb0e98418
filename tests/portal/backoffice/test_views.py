"""The operators' pages: who may open them, and where their links lead."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout.models import Checkout
from payments.models import Merchant
from portal.models import User
from tests import factories
from tests.portal import people

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.search")]


class TestThePage:
    def test_redirects_to_the_only_match(self, operator: Client, captured: Checkout) -> None:
        answer = operator.get("/admin/find", {"q": captured.merchant_order_id})
        assert answer["Location"] == f"/admin/checkout/checkout/{captured.pk}/change/"

    def test_shows_several_with_their_cards_and_merchants(
        self, operator: Client, captured: Checkout, rival: Merchant
    ) -> None:
        Checkout.objects.filter(pk=factories.checkout(rival).pk).update(
            merchant_order_id=captured.merchant_order_id
        )
        page = operator.get("/admin/find", {"q": captured.merchant_order_id}).content.decode()
        assert page.count(captured.merchant_order_id) >= 2 and "Visa 4242" in page and "£90.00" in page
        assert "Rival" in operator.get("/admin/find", {"q": "riva"}).content.decode()

    def test_says_that_older_ones_are_not_shown_and_how_to_find_one(
        self, operator: Client, acme: Merchant, rival: Merchant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for merchant in (acme, rival):
            factories.checkout(merchant, merchant_order_id="A-1")
        page = " ".join(operator.get("/admin/find", {"q": "A-1"}).content.decode().split())
        assert "> 2 orders, found by order ID</h2>" in page and "Older ones" not in page
        monkeypatch.setattr("portal.backoffice.search.MAX_SHOWN", 1)
        # With only one result, the search would redirect to this order.
        Merchant.objects.filter(pk=rival.pk).update(name="A-1")
        page = " ".join(operator.get("/admin/find", {"q": "A-1"}).content.decode().split())
        assert "> The newest 1 order, found by order ID</h2>" in page
        assert "Older ones are not shown. To find one, search for its order ID or for a phone number" in page

    def test_says_so_when_nothing_is_found(self, operator: Client) -> None:
        page = operator.get("/admin/find", {"q": "A-0"}).content.decode()
        assert (
            "No matches for" in page and ">A-0</bdi>”" in page and "whole phone numbers, with the +." in page
        )

    def test_records_a_search_for_a_phone_number(self, operator: Client, captured: Checkout) -> None:
        assert captured.lead and captured.lead.phone
        operator.get("/admin/find", {"q": captured.lead.phone})
        entry = LogEntry.objects.get()
        assert (
            captured.lead.phone not in str(entry.__dict__) and captured.lead.phone[-4:] in entry.object_repr
        )

    def test_requires_the_permission_to_view_orders(self, client: Client) -> None:
        person = User.objects.create_user("x@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_operation"))
        people.operate(client, person)
        assert client.get("/admin/find", {"q": "A-1"}).status_code == 403
        assert 'action="/admin/find"' not in client.get("/admin/").content.decode()

    def test_runs_few_statements(self, operator: Client, captured: Checkout) -> None:
        operator.get("/admin/find")
        with CaptureQueriesContext(connection) as asked:
            operator.get("/admin/find", {"q": "4242"})
        assert len(asked) <= 20
