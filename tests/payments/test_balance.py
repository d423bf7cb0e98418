"""The provider's balance entries for our merchants are stored once, together with the ids of their payouts."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from config.lib import clock
from payments import provider, tasks
from payments.inquiring import balance
from payments.models import BalanceEntry, Merchant
from payments.provider import Entry
from payments.providers.sandbox.adapter import SandboxProvider
from tests.portal import stage

pytestmark = [pytest.mark.django_db, pytest.mark.rule("provider.balance")]
ReadLines = Callable[..., int]


class Bank(SandboxProvider):
    """The sandbox bank, with balance entries."""

    def __init__(self) -> None:
        self.lines: list[Any] = []
        self.since: datetime | None = None

    def entries(self, since: datetime) -> Iterable[Entry]:
        self.since = since
        return list(self.lines)


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch) -> Bank:
    made = Bank()
    monkeypatch.setattr(provider, "current_provider", lambda: made)
    return made


@pytest.fixture
def read_lines(bank: Bank) -> ReadLines:
    """Return a function that reads a balance with the given lines. The function returns how many lines were stored."""

    def read(*lines: Any) -> int:
        bank.lines = list(lines)
        return balance.read_balance(clock.now())

    return read


@pytest.fixture
def line(acme: Merchant) -> Entry:
    """Return a balance entry for an order that Acme captured, in the platform's account."""
    payment = stage.captured(acme).payment
    assert payment is not None
    capture = payment.operations.get(kind="capture")
    return Entry(
        "txn_1",
        "",
        BalanceEntry.Kind.PAYMENT,
        9000,
        291,
        "GBP",
        clock.now(),
        payment=payment.pk,
        operation=capture.pk,
    )


def stored_entries() -> list[tuple[Any, ...]]:
    return list(
        BalanceEntry.objects.order_by("reference").values_list("reference", "merchant__name", "payout")
    )


class TestRead:
    def test_stores_the_amount_and_the_fee_of_our_payment(self, read_lines: ReadLines, line: Entry) -> None:
        assert read_lines(line) == 1
        row = BalanceEntry.objects.get()
        assert (row.amount, row.fee, row.currency, row.kind) == (9000, 291, "GBP", "payment")
        assert row.operation == line.operation and row.checkout_uuid and row.made_at == line.at

    def test_stores_a_line_once_and_keeps_its_payout(self, read_lines: ReadLines, line: Entry) -> None:
        for _ in range(2):
            read_lines(line)
        assert stored_entries() == [("txn_1", "Acme Tickets", "")]
        read_lines(line, replace(line, payout="po_1"), replace(line, payout="po_1"))
        read_lines(line)
        assert stored_entries() == [("txn_1", "Acme Tickets", "po_1")]

    def test_distinguishes_equal_references_of_two_accounts(self, read_lines: ReadLines, line: Entry) -> None:
        read_lines(line, replace(line, account="acct_1"))
        assert BalanceEntry.objects.count() == 2

    def test_assigns_a_payout_to_the_merchant_of_its_account(
        self, read_lines: ReadLines, acme: Merchant
    ) -> None:
        Merchant.objects.filter(pk=acme.pk).update(provider_account="acct_1")
        payout = Entry(
            "txn_2", "acct_1", BalanceEntry.Kind.PAYOUT, -8709, 0, "GBP", clock.now(), payout="po_1"
        )
        assert read_lines(payout, replace(payout, account="acct_2")) == 1
        assert stored_entries() == [("txn_2", "Acme Tickets", "po_1")]

    def test_assigns_a_payout_of_a_former_account_to_its_last_merchant(
        self, read_lines: ReadLines, acme: Merchant, rival: Merchant
    ) -> None:
        for account in ("acct_1", "acct_2", "acct_1", "acct_3"):
            Merchant.objects.filter(pk=acme.pk).update(provider_account=account)
        first = Entry(
            "txn_1", "acct_1", BalanceEntry.Kind.PAYOUT, -8709, 0, "GBP", clock.now(), payout="po_1"
        )
        assert read_lines(first) == 1
        Merchant.objects.filter(pk=rival.pk).update(provider_account="acct_1")
        Merchant.objects.filter(pk=rival.pk).update(provider_account="acct_2")
        second = replace(first, reference="txn_2", account="acct_2")
        assert read_lines(second, replace(first, reference="txn_3"), replace(first, account="")) == 1
        assert stored_entries() == [("txn_1", acme.name, "po_1"), ("txn_2", rival.name, "po_1")]

    def test_assigns_no_payout_of_a_shared_account(
        self, read_lines: ReadLines, acme: Merchant, rival: Merchant
    ) -> None:
        payout = Entry("txn_2", "", BalanceEntry.Kind.PAYOUT, -8709, 0, "GBP", clock.now(), payout="po_1")
        assert read_lines(payout) == 0, "our own account is the operators'"
        Merchant.objects.update(provider_account="acct_1")
        assert read_lines(replace(payout, account="acct_1")) == 0, "an account of two"
        assert stored_entries() == []

    def test_ignores_invalid_entries(self, read_lines: ReadLines, line: Entry) -> None:
        of_no_currency: dict[str, Any] = {
            "reference": 7,
            "amount": "9000",
            "currency": "pounds",
            "at": "today",
        }
        of_no_kind: dict[str, Any] = {"reference": "txn_3", "amount": True, "kind": "tip", "payout": "\x00"}
        strange, odd = replace(line, **of_no_currency), replace(line, **of_no_kind)
        assert read_lines(None, strange, odd, line) == 2
        assert stored_entries() == [("txn_1", "Acme Tickets", ""), ("txn_3", "Acme Tickets", "")]

    def test_runs_at_night_and_covers_three_days(self, bank: Bank, line: Entry) -> None:
        bank.lines = [line]
        tasks.read_balance()
        assert bank.since and (clock.now() - bank.since).days == 3 and BalanceEntry.objects.exists()
