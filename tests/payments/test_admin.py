"""The operators' pages about operations and disputes use plain words."""

import re

import pytest
from django.test import Client

from checkout.models import Checkout
from payments.models import Dispute, Operation
from tests import outside

pytestmark = pytest.mark.django_db
DISCREPANCIES = "/admin/payments/discrepancy/"


class TestPlainWords:
    def test_of_an_operation_are_those_of_its_badge(self, operator: Client, captured: Checkout) -> None:
        capture = Operation.objects.get(kind="capture")
        page = operator.get(f"/admin/payments/operation/{capture.pk}/change/").content.decode()
        for words in (
            ">State</label>",
            ">Done<",
            ">To charge the card<",
            ">Waits for the provider<",
        ):
            assert words in page, words
        for words in (
            "Succeeded",
            "payment: the card",
            ">Is open<",
            "Lease",
            ">False<",
            f"client:{captured.merchant_id}",
        ):
            assert words not in page, words
        Operation.objects.filter(pk=capture.pk).update(state="failed", reason="card_account_closed")
        page = operator.get(f"/admin/payments/operation/{capture.pk}/change/").content.decode()
        assert "The card’s account is closed." in page and "card_account_closed" not in page

    def test_of_a_dispute_are_the_portals_and_its_movements_fit(
        self, operator: Client, captured: Checkout, posted: list[int]
    ) -> None:
        row = outside.dispute(captured.payment, 2250)
        Dispute.objects.filter(pk=row.pk).update(reason="fraudulent")
        page = operator.get(f"/admin/payments/dispute/{row.pk}/change/").content.decode()
        assert "The customer’s reason: “I did not make this payment.”" in page and ">fraudulent<" not in page
        table = page[page.index("Movements</h2>") :]
        heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)
        assert heads == ["Kind", "Amount", "Whose money", "Occurred"]
        assert "Taken back for a dispute" in table
        assert '<td data-label="Amount" class="cell-amount">−£22.50</td>' in table
