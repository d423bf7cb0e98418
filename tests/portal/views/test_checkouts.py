"""The list of checkouts: its pages and its CSV file."""

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout.models import Checkout, Refund
from payments.models import Merchant
from portal import files
from portal.models import AuditEntry, Role
from tests import factories
from tests.outside import dispute
from tests.portal import stage

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.SUPPORT)


class TestPages:
    def test_continue_where_the_previous_page_ended(self, acme: Merchant, client: Client) -> None:
        for number in range(53):
            factories.checkout(acme, merchant_order_id=f"N-{number:02}")
        first = client.get("/portal/checkouts").content.decode()
        assert first.count("<tr>") - 1 == 50 and "N-52" in first and "N-02" not in first
        older = first.split('">Older<')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
        second = client.get(f"/portal/checkouts{older}").content.decode()
        assert second.count("<tr>") - 1 == 3 and "N-02" in second and ">Newest<" in second

    def test_with_an_invalid_cursor_restart(self, client: Client) -> None:
        assert client.get("/portal/checkouts?cursor=abc")["Location"] == "/portal/checkouts"

    def test_cost_the_same_for_many_rows(self, acme: Merchant, client: Client) -> None:
        def cost() -> int:
            with CaptureQueriesContext(connection) as queries:
                client.get("/portal/checkouts")
            return len(queries)

        stage.captured(acme)
        cost()  # a session's first request also stores its start time
        few = cost()
        for _ in range(10):
            stage.captured(acme)
        assert cost() == few <= 20

    def test_name_an_amount_in_the_currency_of_what_they_show(self, acme: Merchant, client: Client) -> None:
        page = "/portal/checkouts?at_least=20"
        assert "<bdi>20 or more</bdi>" in client.get(page).content.decode(), "nothing is found"
        checkout = factories.checkout(acme)
        assert "<bdi>£20 or more</bdi>" in client.get(page).content.decode()
        yen = factories.checkout(acme)
        Checkout.objects.filter(pk=yen.pk).update(currency="JPY")
        assert checkout.pk != yen.pk and "<bdi>20 or more</bdi>" in client.get(page).content.decode()

    def test_send_htmx_only_the_list(self, client: Client, unpaid: Checkout) -> None:
        part = client.get("/portal/checkouts", headers={"HX-Request": "true", "HX-Target": "found"})
        assert unpaid.merchant_order_id in part.content.decode() and "<html" not in part.content.decode()

    @pytest.mark.usefixtures("posted")
    def test_mark_captured_orders_with_a_dispute_or_a_failed_refund(
        self, acme: Merchant, client: Client
    ) -> None:
        failed, disputed = stage.captured(acme), stage.captured(acme)
        stage.captured(acme)
        refund = {"merchant_refund_ref": "r-1", "amount": failed.amount, "status": "failed"}
        Refund.objects.create(merchant=acme, checkout=failed, created_at=failed.created_at, **refund)
        dispute(disputed.payment)
        page = client.get("/portal/checkouts").content.decode()
        assert page.count("Captured</span>") == 3
        assert page.count("Refund failed</span>") == page.count("Disputed</span>") == 1

    def test_without_rows_show_the_next_step(self, client: Client) -> None:
        assert "No checkouts yet" in client.get("/portal/checkouts").content.decode()
        none = client.get("/portal/checkouts?q=nobody").content.decode()
        assert "Clear the filters" in none and ">Clear<" not in none and "Export CSV" not in none


@pytest.mark.rule("portal.csv")
class TestFile:
    def read(self, client: Client, query: str = "") -> list[dict[str, str]]:
        answer: Any = client.get(f"/portal/checkouts.csv{query}")
        assert answer["Content-Type"] == "text/csv; charset=utf-8" and answer.streaming
        text = b"".join(answer.streaming_content).decode("utf-8-sig")
        return list(csv.DictReader(io.StringIO(text)))

    def test_contains_the_filtered_rows(self, acme: Merchant, client: Client, unpaid: Checkout) -> None:
        paid = stage.captured(acme, merchant_order_id="A-2")
        (row,) = self.read(client, "?state=captured")
        assert (row["order_id"], row["status"], row["amount"], row["currency"], row["card_last4"]) == (
            *("A-2", "captured", "90.00", "GBP", "4242"),
        )
        assert row["checkout_uuid"] == str(paid.pk) and len(self.read(client)) == 2
        entry = AuditEntry.objects.filter(action="exported").latest("created_at")
        assert entry.facts == {"file": "checkouts", "filters": {}}

    def test_contains_all_pages(
        self, acme: Merchant, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(files, "BATCH", 3)
        wanted = [
            factories.checkout(acme, merchant_order_id=f"N-{number}").merchant_order_id for number in range(7)
        ]
        same = Checkout.objects.first()
        assert same
        Checkout.objects.update(created_at=same.created_at - timedelta(days=1))
        assert sorted(row["order_id"] for row in self.read(client)) == sorted(wanted)

    @pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
    def test_contains_no_formulas(self, acme: Merchant, client: Client, start: str) -> None:
        checkout = factories.checkout(acme)
        Checkout.objects.filter(pk=checkout.pk).update(merchant_order_id=f"{start}cmd|calc")
        assert self.read(client)[0]["order_id"] == f"'{start}cmd|calc"
