"""The refunds page: what it finds, shows and exports, and its query plans."""

import csv
import re
from io import StringIO

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout import refunds
from checkout.models import Checkout, Refund
from payments.models import Merchant
from portal.models import Role
from tests import plans
from tests.factories import CAUSE
from tests.outside import refund_outside
from tests.portal import stage

pytestmark = pytest.mark.django_db
MANY = """
INSERT INTO checkout_refund (id, merchant_id, checkout_id, merchant_refund_ref, amount, status, created_at)
SELECT uuidv7(- n * interval '1 minute'), merchant_id, checkout_id, 'old-' || n, amount, 'failed',
    now() - n * interval '1 minute'
FROM checkout_refund, generate_series(1, 5000) n
"""


client = stage.client_of(Role.SUPPORT)


@pytest.fixture
def refund(captured: Checkout) -> Refund:
    accepted = refunds.accept(captured.merchant, captured.pk, ref="r-1", reason="=Moved", cause=CAUSE)
    return accepted.refund


class TestRefunds:
    def test_are_found_by_reference_order_and_state(self, client: Client, refund: Refund) -> None:
        order_id = refund.checkout.merchant_order_id
        for query in ("", "q=r-1", f"q={order_id.lower()[:3]}", "q=4242", "state=pending"):
            words = client.get(f"/portal/refunds?{query}").content.decode()
            assert order_id in words and "£90.00" in words and "Pending" in words, query
        for query in ("q=r-2", "state=settled", "until=2020-01-01"):
            assert "No refunds match" in client.get(f"/portal/refunds?{query}").content.decode(), query

    @pytest.mark.rule("sync.outside")
    @pytest.mark.usefixtures("posted")
    def test_in_the_banks_dashboard_are_shown_under_balance_and_on_the_order(
        self, client: Client, captured: Checkout
    ) -> None:
        order_id = captured.merchant_order_id
        refund_outside(captured.payment, 2000)
        words = client.get("/portal/refunds").content.decode()
        assert order_id not in words
        assert "Refunds made in the bank’s dashboard appear on the order’s page and under Balance." in words
        balance = client.get("/portal/balance").content.decode()
        assert order_id in balance and "−£20.00" in balance
        assert "£20.00" in client.get(f"/portal/checkouts/{captured.pk}").content.decode()
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        words = client.get("/portal/refunds").content.decode()
        assert order_id in words and "Refunds made in the bank’s dashboard appear on" in words

    @pytest.mark.parametrize(
        ("reason", "helps"),
        [("card_closed", "Pay the customer another way."), ("refused", "You can try the refund again.")],
    )
    def test_that_failed_say_what_to_do(
        self, client: Client, refund: Refund, reason: str, helps: str
    ) -> None:
        Refund.objects.update(status="failed", failure_reason=reason)
        assert "not been paid back" not in client.get("/portal/refunds").content.decode(), (
            "another is on its way"
        )
        Checkout.objects.update(status="captured")
        words = re.sub(r"\s+", " ", client.get("/portal/refunds").content.decode())
        link = f'<a href="/portal/checkouts/{refund.checkout_id}">What to do</a>'
        assert f"The customer has not been paid back. {helps} {link}" in words

    def test_of_another_merchant_are_not_found(self, rival: Merchant, refund: Refund) -> None:
        words = stage.browser(stage.person(rival, Role.OWNER)).get("/portal/refunds?q=r-1").content.decode()
        assert refund.checkout.merchant_order_id not in words

    def test_are_exported_as_they_are_filtered(self, client: Client, refund: Refund) -> None:
        page = client.get("/portal/refunds.csv?state=pending")
        text = b"".join(page.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]  # streamed
        (row,) = csv.DictReader(StringIO(text))
        assert (row["refund_ref"], row["amount"], row["status"]) == ("r-1", "90.00", "pending")
        assert row["reason"] == "'=Moved", "no spreadsheet runs it"

    def test_are_read_in_the_order_of_an_index_for_any_number(self, client: Client, refund: Refund) -> None:
        with connection.cursor() as cursor:
            cursor.execute(MANY)
            cursor.execute("ANALYZE checkout_refund")
        with CaptureQueriesContext(connection) as asked:
            client.get("/portal/refunds")
        (sql,) = [
            query["sql"]
            for query in asked
            if 'FROM "checkout_refund"' in query["sql"] and "LIMIT 51" in query["sql"]
        ]
        assert "checkout_refund" not in set(plans.scans(sql)) and "OFFSET" not in sql
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {sql}")
            plan = "\n".join(line for (line,) in cursor.fetchall())
        assert "Backward using refund_listed" in plan and "Sort" not in plan, plan
