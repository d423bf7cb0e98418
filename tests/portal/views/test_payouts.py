"""Payouts on the balance page, and the file whose lines add up to a payout."""

from datetime import timedelta

import pytest
from django.test import Client

from config.lib import clock
from payments.models import BalanceEntry, Merchant
from portal.models import AuditEntry, Role
from tests.portal import stage
from tests.portal.views.test_balance import charged, lines

pytestmark = [pytest.mark.django_db, pytest.mark.rule("provider.balance")]


client = stage.client_of(Role.ADMIN)


class TestPayouts:
    def test_are_on_the_balance_page_with_their_arrival_date(
        self, acme: Merchant, rival: Merchant, client: Client
    ) -> None:
        paid, _ = stage.payout(acme), stage.payout(rival, reference="po_2")
        page = client.get("/portal/balance").content.decode()
        assert "Paid out" in page and "£87.09" in page and "po_1" in page and "po_2" not in page
        assert f"{paid.available_at:%-d %b %Y}" in page
        assert f"/portal/balance/payouts/{paid.pk}.csv" in page

    def test_are_not_mentioned_if_the_provider_reports_none(self, client: Client) -> None:
        assert "Paid out" not in client.get("/portal/balance").content.decode()

    def test_are_those_of_the_selected_days(self, acme: Merchant, client: Client) -> None:
        stage.payout(acme)
        BalanceEntry.objects.update(made_at=clock.now() - timedelta(days=40))
        stage.payout(acme, 5000, "po_2")
        since = f"{clock.now() - timedelta(days=3):%Y-%m-%d}"
        page = client.get("/portal/balance", {"since": since}).content.decode()
        assert "£50.00" in page and "£87.09" not in page

    def test_that_were_returned_are_negative(self, acme: Merchant, client: Client) -> None:
        stage.payout(acme, -8709)
        assert "−£87.09" in client.get("/portal/balance").content.decode()


class TestFile:
    def test_adds_up_to_what_the_bank_account_got(self, acme: Merchant, client: Client) -> None:
        brought = charged(acme)
        payout = BalanceEntry.objects.get(kind="payout")
        BalanceEntry.objects.create(
            merchant=acme,
            account=payout.account,
            reference="txn_3",
            kind="fee",
            amount=-200,
            currency="GBP",
            made_at=payout.made_at - timedelta(days=1),
            payout="po_1",
        )
        stage.captured(acme, merchant_order_id="A-2")
        heading, taken, fee = lines(client.get(f"/portal/balance/payouts/{payout.pk}.csv"))
        assert heading[1:5] == ["kind", "amount", "fee", "net"]
        assert taken[1:6] == ["payment", "90.00", "2.91", "87.09", "GBP"]
        assert taken[6].startswith("A-") and taken[7] == str(brought.checkout_uuid) and taken[8] == "txn_2"
        assert fee[1:6] == ["fee", "-2.00", "0.00", "-2.00", "GBP"] and fee[6:8] == ["", ""]
        entry = AuditEntry.objects.get(action="exported")
        assert entry.facts == {"file": "payout", "reference": "po_1"}

    def test_of_an_entry_that_is_not_a_payout_is_a_404(self, acme: Merchant, client: Client) -> None:
        assert client.get(f"/portal/balance/payouts/{charged(acme).pk}.csv").status_code == 404
