"""Repairs a restored database: records again what the provider has moved since the backup was made.

The service is closed until the repair has ended (payments/restore_guard.py). A repair that was stopped can be run
again, and the rows that it has written are kept. The database does not show which calls were sent after the backup.
For each open operation, the repair therefore assumes that it was last sent at the time of the repair (rule
doubt.old_key). Rules restore.repair, restore.unknown_orders, restore.open.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import settling
from checkout.models import Change, Checkout
from checkout.restore import payment_rebuild
from checkout.syncing import sync
from config.lib import clock
from payments import planning, provider, restore_guard, safe_answers
from payments.discrepancies import kinds, reporting
from payments.inquiring import reconciliation
from payments.models import Merchant, Payment
from payments.provider import PaymentRecord

# The provider's books are read from this long before our last history entry. Reading a part of the books twice is
# harmless.
MARGIN = timedelta(hours=1)
MAX_ROUNDS = 10


@dataclass
class Repair:
    """Result of a repair.

    `payments` is the number of payments that were written again, and `synced` is the number of syncs that changed our
    database. `moved` are the ids of all payments that were read. `unknown` are the ids of payments for orders that
    our database does not have.
    """

    payments: int = 0
    synced: int = 0
    moved: set[UUID] = field(default_factory=set)
    unknown: set[UUID] = field(default_factory=set)

    @property
    def written(self) -> int:
        return self.payments + self.synced


def repair(since: datetime, write_line: Callable[[str], None] = lambda _: None) -> Repair:
    """Record the money that the provider has moved after `since` and that our database lacks. Open the service.

    The repair has several rounds, because a round can need rows that the previous round has written. After each round,
    `write_line` is called with a line about the progress. A payment for an unknown order is only reported. Raises
    ProviderUnreachable, and then leaves the service closed.
    """
    result = Repair()
    with restore_guard.repair_mode():
        since = restore_guard.begin_repair(since)
        for number in range(1, MAX_ROUNDS + 1):
            written_before = result.written
            _run_round(since - reconciliation.SKEW, result)
            write_line(f"Round {number}: {result.written - written_before} written again.")
            if result.written == written_before:
                break
        _settle_orders(result.moved)
        reconciliation.run(since)
        planning.assume_sent(since, clock.now())
    restore_guard.reopen_service()
    return result


def default_start() -> datetime:
    """Return the time from which the provider's books are read: MARGIN before our last history entry."""
    last = Change.objects.order_by("-pk").values_list("created_at", flat=True).first()
    return min(last or clock.now(), clock.now()) - MARGIN


def _run_round(since: datetime, result: Repair) -> None:
    """Write the missing payments, then sync all payments that have changed at the provider.

    The payments for orders are synced before the payments for shares, because shares are paid later.
    """
    bank, moved = provider.current_provider(), set[UUID]()
    for record in safe_answers.safe_payment_records(bank.payments(since)):
        _restore_payment(record, result)
        moved.add(record.payment)
    moved.update(safe_answers.safe_payment_ids(bank.changed(since)))
    result.moved |= moved
    for kind in (Payment.Kind.ORDER, Payment.Kind.SHARE):
        for payment_uuid in _payments_of_kind(moved, kind):
            result.synced += sync.sync(payment_uuid, is_restored=True)
            result.synced += payment_rebuild.end_replaced_refunds(payment_uuid)


def _settle_orders(moved: Iterable[UUID]) -> None:
    """Settle the orders to which these payments belong. The books of all their cards must already be recorded."""
    orders = Payment.objects.filter(pk__in=list(moved)).values_list("checkout_uuid", flat=True)
    for checkout_uuid in sorted(set(orders)):
        with transaction.atomic(durable=True):
            checkout = Checkout.objects.locked(checkout_uuid)
            settling.settle(checkout, clock.now())


def _payments_of_kind(payments: Iterable[UUID], kind: Payment.Kind) -> list[UUID]:
    rows = Payment.objects.filter(pk__in=list(payments), kind=kind).order_by("pk")
    return list(rows.values_list("pk", flat=True))


def _restore_payment(record: PaymentRecord, result: Repair) -> None:
    existing = Payment.objects.filter(pk=record.payment)
    if existing.exists():
        # The restored row might not have the provider's payment id, which every look-up needs.
        lost = existing.filter(provider_reference="").exclude(provider_reference=record.reference)
        lost.update(provider_reference=record.reference, provider_account=record.place)
    elif record.is_moved and payment_rebuild.write_payment(record):
        result.payments += 1
    elif record.is_moved:
        merchant = Merchant.objects.filter(pk=record.account).first()
        facts = {"amount": record.amount, "currency": record.currency}
        facts |= {"order": str(record.subject), "reference": record.reference}
        reporting.report(kinds.UNKNOWN_ORDER, record.payment, merchant=merchant, **facts)
        result.unknown.add(record.payment)
