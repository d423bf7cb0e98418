"""Reads Stripe's balances: the amount of each charge, its fee, and the payout that includes it.

Stripe's documentation: "Payout reconciliation", "Balance transaction types". Payouts to the platform's own account
are not read, because Stripe does not record to which merchants they belong.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import stripe
from stripe.params import BalanceTransactionListParams, PayoutListParams

from payments.models import BalanceEntry, Operation, Payment
from payments.provider import Entry
from payments.providers.stripe import amounts, books, metadata

Kind = Operation.Kind
_KINDS = {
    "charge": BalanceEntry.Kind.PAYMENT,
    "refund": BalanceEntry.Kind.REFUND,
    "dispute": BalanceEntry.Kind.DISPUTE,
    "payout": BalanceEntry.Kind.PAYOUT,
}
_FEES = frozenset(("stripe_fee", "stripe_fx_fee", "tax_fee"))


def balance_entries(since: datetime) -> Iterator[Entry]:
    """Yield the balance lines of each account since `since`, then the lines of each payout since `since`.

    Raises ProviderUnreachable.
    """
    first = int(since.timestamp())
    for account in books.list_accounts():
        yield from _balance_lines(account, {"created": {"gte": first}})
        for payout in (
            _automatic_payouts(account, {"created": {"gte": first}, "limit": 100}) if account else ()
        ):
            yield from _balance_lines(account, {"payout": payout}, payout)


def _automatic_payouts(account: str, parameters: PayoutListParams) -> Iterator[str]:
    """Yield the ids of automatic payouts. For a manual payout, Stripe does not report which lines it includes."""
    for payout in books.list_objects(account, lambda client: client.v1.payouts.list(parameters)):
        if payout.automatic:
            yield payout.id


def _balance_lines(
    account: str, parameters: BalanceTransactionListParams, payout: str = ""
) -> Iterator[Entry]:
    whole_parameters: BalanceTransactionListParams = {**parameters, "limit": 100, "expand": ["data.source"]}
    for line in books.list_objects(
        account, lambda client: client.v1.balance_transactions.list(whole_parameters)
    ):
        yield _entry_of_line(line, account, payout)


def _entry_of_line(line: stripe.BalanceTransaction, account: str, payout: str) -> Entry:
    source: Any = line.source
    about = getattr(source, "object", "")
    payment, operation = (
        _our_payment_of(source, account) if about in ("charge", "refund", "dispute") else (None, None)
    )
    arrives_at = source.arrival_date if about == "payout" else line.available_on
    return Entry(
        reference=line.id,
        account=account,
        kind=BalanceEntry.Kind.FEE if line.type in _FEES else _KINDS.get(about, BalanceEntry.Kind.OTHER),
        amount=amounts.from_stripe_amount(line.amount, line.currency),
        fee=amounts.from_stripe_amount(line.fee, line.currency),
        currency=line.currency.upper(),
        at=datetime.fromtimestamp(line.created, UTC),
        available_at=datetime.fromtimestamp(arrives_at, UTC),
        payment=payment.pk if payment else None,
        operation=operation,
        payout=source.id if about == "payout" else payout,
    )


def _our_payment_of(source: Any, account: str) -> tuple[Payment | None, UUID | None]:
    """Return our payment for a Stripe charge, refund or dispute, and the id of our capture or refund operation."""
    payment = books.payment_of(source, account)
    if payment is None or source.object == "dispute":
        return payment, None
    if source.object == "charge":
        captures = payment.operations.filter(kind=Kind.CAPTURE, state=Operation.State.SUCCEEDED)
        return payment, captures.values_list("pk", flat=True).first()
    named = metadata.read_id(source, metadata.OPERATION)
    refunds = payment.operations.filter(kind=Kind.REFUND).values_list("pk", flat=True)
    return payment, named if named in refunds else None
