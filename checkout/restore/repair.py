"""Repairs a restored database: records again what the provider has moved since the backup was made.

The service is closed until the repair has ended (payments/restore_guard.py). A repair that was stopped can be run
again, and the rows that it has written are kept. If a payment cannot be repaired, the others are, and the service stays
closed, because the money of this payment could move twice.

The database does not show which calls were sent after the backup. For each open operation, the repair therefore assumes
that it was last sent at the time of the repair (rule doubt.old_key). Rules restore.repair, restore.failed,
restore.unknown_orders, restore.open.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import transaction

from checkout import settling
from checkout.models import Change, Checkout
from checkout.restore import payment_rebuild
from checkout.syncing import sync
from config.lib import clock
from payments import planning, provider, restore_guard, safe_answers
from payments.discrepancies import kinds, reporting
from payments.inquiring import inquiries, reconciliation
from payments.models import Merchant, Payment
from payments.provider import PaymentRecord

# The provider's books are read from this long before our last history entry. Reading a part of the books twice is
# harmless.
MARGIN = timedelta(hours=1)
MAX_ROUNDS = 10
# If more payments than this fail in a round, the cause is not a single payment, and the repair stops.
MAX_FAILED = 20
log = structlog.get_logger("checkout.restore")


@dataclass
class Repair:
    """Result of a repair.

    `payments` is the number of payments that were written again, and `synced` is the number of syncs that changed our
    database. `moved` are the ids of all payments that were read. `unknown` are the ids of payments for orders that
    our database does not have. `failed` are the ids of the payments that could not be repaired. If `is_open`, the
    service was opened.
    """

    payments: int = 0
    synced: int = 0
    moved: set[UUID] = field(default_factory=set)
    unknown: set[UUID] = field(default_factory=set)
    failed: set[UUID] = field(default_factory=set)
    is_open: bool = False

    @property
    def written(self) -> int:
        return self.payments + self.synced


def repair(
    since: datetime, write_line: Callable[[str], None] = lambda _: None, *, accepted: Collection[UUID] = ()
) -> Repair:
    """Record the money that the provider has moved after `since` and that our database lacks. Open the service.

    The repair has several rounds, because a round can need rows that the previous round has written. After each round,
    `write_line` is called with a line about the progress. A payment for an unknown order is only reported. A payment
    that cannot be repaired is reported, and keeps the service closed unless it is in `accepted`. Raises
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
        _report_failed(result)
        _settle_orders(result)
        reconciliation.run(since)
        planning.assume_sent(since, clock.now())
    if result.failed <= set(accepted):
        restore_guard.reopen_service()
        result.is_open = True
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
    result.failed = set()
    for record in safe_answers.safe_payment_records(bank.payments(since)):
        with _going_on(record.payment, result):
            _restore_payment(record, result)
        moved.add(record.payment)
    moved.update(safe_answers.safe_payment_ids(bank.changed(since)))
    result.moved |= moved
    for kind in (Payment.Kind.ORDER, Payment.Kind.SHARE):
        for payment_uuid in _payments_of_kind(moved, kind):
            with _going_on(payment_uuid, result):
                result.synced += sync.sync(payment_uuid, is_restored=True)
                result.synced += payment_rebuild.end_replaced_refunds(payment_uuid)


@contextmanager
def _going_on(payment_uuid: UUID, result: Repair) -> Iterator[None]:
    """Go on with the next payment if the `with` block raises an exception. Log it, and add the payment to `failed`.

    The exception is raised if more than MAX_FAILED payments have failed.
    """
    try:
        yield
    except Exception:
        log.exception("payment not repaired", payment=str(payment_uuid))
        result.failed.add(payment_uuid)
        if len(result.failed) > MAX_FAILED:
            raise


def _report_failed(result: Repair) -> None:
    """Report each payment that could not be repaired, and open an inquiry about it, so that it is read again."""
    payments = Payment.objects.in_bulk(result.failed)
    for payment_uuid in sorted(result.failed):
        payment = payments.get(payment_uuid)
        merchant = payment.merchant_id if payment else None
        facts = {"checkout": str(payment.checkout_uuid)} if payment else {}
        reporting.report(kinds.NOT_REPAIRED, payment_uuid, merchant=merchant, **facts)
    inquiries.open_inquiries(result.failed)


def _settle_orders(result: Repair) -> None:
    """Settle the orders whose payments were read, except the orders with a payment that could not be repaired.

    The books of all cards of an order must be recorded before the order is settled.
    """
    failed = Payment.objects.filter(pk__in=list(result.failed)).values("checkout_uuid")
    rows = Payment.objects.filter(pk__in=list(result.moved)).exclude(checkout_uuid__in=failed)
    for checkout_uuid in sorted(set(rows.values_list("checkout_uuid", flat=True))):
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
