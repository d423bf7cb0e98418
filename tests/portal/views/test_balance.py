"""The balance is the sum of the movements, on the page and in the CSV file."""

import csv
from typing import Any

import pytest
from django.test import Client

from checkout import refunds
from payments.models import BalanceEntry, Merchant, Operation
from payments.providers.sandbox import client as bank
from portal.models import AuditEntry, Role
from tests import factories, mates
from tests.outside import decide, dispute, hear, refund_outside
from tests.portal import stage

pytestmark = pytest.mark.django_db
BALANCE = '<p class="balance"><span class="amount">£90.00</span>'


client = stage.client_of(Role.ADMIN)


def lines(answer: Any) -> list[list[str]]:
    return list(csv.reader(b"".join(answer.streaming_content).decode("utf-8-sig").splitlines()))


def charged(merchant: Merchant) -> BalanceEntry:
    """Create an entry in the processor's balance: a captured order that is part of a payout."""
    checkout = stage.captured(merchant)
    assert checkout.payment is not None
    payout = stage.payout(merchant)
    return BalanceEntry.objects.create(
        merchant=merchant,
        account=payout.account,
        reference="txn_2",
        kind=BalanceEntry.Kind.PAYMENT,
        amount=9000,
        fee=291,
        currency="GBP",
        made_at=payout.made_at,
        checkout_uuid=checkout.pk,
        operation=checkout.payment.operations.get(kind="capture").pk,
        payout=payout.payout,
    )


class TestBalance:
    def test_is_the_sum_of_the_movements(self, acme: Merchant, client: Client) -> None:
        stage.captured(acme)
        stage.captured(acme, merchant_order_id="A-2")
        page = client.get("/portal/balance").content.decode()
        assert "£180.00" in page and page.count("£90.00") == 2
        answer: Any = client.get("/portal/balance.csv")
        _, *lines = csv.reader(b"".join(answer.streaming_content).decode("utf-8-sig").splitlines())
        assert len(lines) == 2 and sum(float(line[2]) for line in lines) == 180.0
        assert AuditEntry.objects.filter(action="exported").exists()

    @pytest.mark.usefixtures("posted")
    def test_shows_the_disputed_amount(self, acme: Merchant, client: Client) -> None:
        stage.captured(acme)
        kept = stage.captured(acme, merchant_order_id="A-2")
        assert "isputed" not in client.get("/portal/balance").content.decode()
        found = dispute(kept.payment)
        page = client.get("/portal/balance").content.decode()
        assert BALANCE in page and 'In dispute: <strong class="amount">£90.00' in page
        assert "Taken back in a dispute" in page and page.count("Disputed</span>") == 2, (
            "beside its movements"
        )
        decide(found, is_won=False)
        page = client.get("/portal/balance").content.decode()
        assert "isputed" not in page and "In dispute" not in page and BALANCE in page
        decide(found, is_won=True)
        page = client.get("/portal/balance").content.decode()
        assert "Returned after a won dispute" in page and BALANCE.replace("90", "180") in page

    @pytest.mark.usefixtures("posted")
    def test_includes_dashboard_refunds_and_returned_refunds(self, acme: Merchant, client: Client) -> None:
        captured = stage.captured(acme)
        given = refund_outside(captured.payment, 2000)
        assert BALANCE.replace("90", "70") in client.get("/portal/balance").content.decode()
        bank.call_bank("end_refund", payment=captured.payment_id, reference=given)
        hear()
        page = client.get("/portal/balance").content.decode()
        assert BALANCE in page and "Refund returned" in page
        _, back, refunded, taken = lines(client.get("/portal/balance.csv"))
        assert [row[2] for row in (back, refunded, taken)] == ["20.00", "-20.00", "90.00"]
        assert refunded[6] == str(Operation.objects.get(purpose="outside").pk)

    def test_shows_the_total_of_the_selected_days(self, acme: Merchant, client: Client) -> None:
        stage.captured(acme)
        page = client.get("/portal/balance?since=2020-01-01").content.decode()
        assert '<strong>Total</strong> <span class="amount">£90.00' in page

    @pytest.mark.rule("provider.balance")
    def test_shows_the_fee_of_each_movement_if_it_is_known(self, acme: Merchant, client: Client) -> None:
        lines_of = charged(acme)
        stage.captured(acme, merchant_order_id="A-2")
        page = client.get("/portal/balance").content.decode()
        assert page.count("fee £2.91") == 1 and "£180.00" in page, "a fee is no movement of the ledger"
        heading, untold, told = lines(client.get("/portal/balance.csv"))
        assert heading[-3:] == ["processor_fee", "processor_fee_currency", "payout"]
        assert untold[-3:] == ["", "", ""] and told[-3:] == ["2.91", "GBP", "po_1"]
        assert told[6] == str(lines_of.operation)

    def test_file_contains_refunds_as_numbers(self, acme: Merchant, client: Client) -> None:
        captured = stage.captured(acme)
        refunds.accept(acme, captured.pk, ref="r-1", cause=factories.CAUSE)
        for _ in range(3):
            mates.pump(captured.pk)
        answer: Any = client.get("/portal/balance.csv")
        _, *lines = csv.reader(b"".join(answer.streaming_content).decode("utf-8-sig").splitlines())
        assert [float(line[2]) for line in lines] == [-90.0, 90.0]
