"""Repairs a database that was put back to an earlier moment: what the provider has moved since is written again.

The service is closed meanwhile, and opens when the repair has ended (payments/opening.py). A repair that breaks off
may be begun again: what it has written is known then. Rules restore.repair, restore.unknown_orders, restore.open.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from checkout.models import Change, Checkout, PaymentRequest
from checkout.restore import rebuilding
from config.lib import batches, clock
from payments import discrepancies, opening, provider, reconciliation, safe_answers
from payments.models import Merchant, Operation, Payment
from payments.outside import acts
from payments.provider import PaymentRecord, Record, Verdict

Kind = Operation.Kind
MARGIN = timedelta(hours=1)  # before our last history entry: to read too much does no harm
MAX_ROUNDS = 10
CHUNK = 500
MOVED = (Verdict.SUCCEEDED, Verdict.PENDING)
ENDED = (Verdict.SUCCEEDED, Verdict.DECLINED, Verdict.FAILED)


@dataclass
class Repair:
    """What a repair has done: how much was written again, and what is left for a person or for the pumps."""

    payments: int = 0
    operations: int = 0
    booked: int = 0
    unknown: set[UUID] = field(default_factory=set)
    left: set[UUID] = field(default_factory=set)

    @property
    def written(self) -> int:
        return self.payments + self.operations + self.booked


def repair(since: datetime, tell: Callable[[str], None] = lambda _: None) -> Repair:
    """Write again what the provider has moved after `since` and our books lack, then open the service.

    `tell` is given a line for each round. What is not known to belong to an order of ours is reported and never moved;
    a payment with an open operation is left to the pumps. Raises ProviderUnreachable: then the service stays closed.
    """
    done = Repair()
    with opening.repairing():
        since = opening.begin_repair(since)
        for number in range(1, MAX_ROUNDS + 1):
            before = done.written
            _round(since, done)
            tell(f"Round {number}: {done.written - before} written again.")
            if done.written == before:
                break
        reconciliation.compare(since)
    opening.open_again()
    return done


def last_moment() -> datetime:
    """Return the moment from which to read the provider's books: a margin before our last history entry."""
    last = Change.objects.order_by("-pk").values_list("created_at", flat=True).first()
    return min(last or clock.now(), clock.now()) - MARGIN


def _round(since: datetime, done: Repair) -> None:
    since -= reconciliation.SKEW
    for told in safe_answers.payment_records(provider.current().payments(since)):
        _write_payment(told, done)
    books = _Books()
    for records in batches.chunks(safe_answers.records(provider.current().records(since)), CHUNK):
        books.read(records)
    for record in books.open:
        done.operations += rebuilding.conclude(record.key, is_captured=record.payment in books.captured)
    for record in books.revived:
        done.operations += rebuilding.revive(record.key)
    for payment_uuid in books.returned:  # before what was given again in their place
        rebuilding.book_returned(payment_uuid)
    for kind, acts_of in _PHASES:
        for payment, records in books.lost(kind, acts_of).items():
            _rebuild(payment, records, payment in books.captured, done)


def _write_payment(told: PaymentRecord, done: Repair) -> None:
    known = Payment.objects.filter(pk=told.payment)
    if known.exists():  # we may have lost its id there, which every question needs
        known.filter(provider_reference="").exclude(provider_reference=told.reference).update(
            provider_reference=told.reference, provider_account=told.place
        )
        return
    if not told.is_moved:
        return
    share = PaymentRequest.objects.filter(pk=told.subject).first() if told.subject else None
    order = share.checkout_id if share else told.subject
    if order and Checkout.objects.filter(pk=order).exists() and rebuilding.write_payment(order, told):
        done.payments += 1
        return
    merchant = Merchant.objects.filter(pk=told.account).first()
    facts = {
        "amount": told.amount,
        "currency": told.currency,
        "order": str(told.subject),
        "reference": told.reference,
    }
    discrepancies.report(acts.UNKNOWN_ORDER, told.payment, merchant=merchant, **facts)
    done.unknown.add(told.payment)


class _Books:
    """What the provider's books have and ours lack: whole operations, or the ends of open ones."""

    def __init__(self) -> None:
        self.open: list[Record] = []
        self.revived: list[Record] = []
        self.captured = set[UUID]()
        self.returned = set[UUID]()
        self._lost: list[tuple[Payment, Record]] = []

    def read(self, records: Sequence[Record]) -> None:
        known = Operation.objects.in_bulk([row.key for row in records])
        payments = Payment.objects.in_bulk([row.payment for row in records])
        booked = acts.booked(records)
        self.returned |= reconciliation.payments_of_returned(records)
        for record in records:
            is_capture = record.kind == Kind.CAPTURE and record.verdict in MOVED
            if is_capture:
                self.captured.add(record.payment)
            operation, payment = known.get(record.key), payments.get(record.payment)
            if operation is not None:
                if operation.ended_at is None and record.verdict in ENDED:
                    self.open.append(record)
                if is_capture and operation.state in (Operation.State.FAILED, Operation.State.DECLINED):
                    self.revived.append(record)
            elif payment is not None and record.key not in booked and _is_ours(record, payment):
                self._lost.append((payment, record))

    def lost(self, kind: Payment.Kind, kinds: Collection[str]) -> dict[UUID, list[Record]]:
        """Return the lost acts of these kinds on payments of this kind, by payment."""
        found: dict[UUID, list[Record]] = {}
        for payment, record in self._lost:
            if payment.kind == kind and record.kind in kinds:
                found.setdefault(payment.pk, []).append(record)
        return found


def _is_ours(record: Record, payment: Payment) -> bool:
    """Return whether it is an operation of ours that moved money; `reconciliation` reports what others did there."""
    is_whole = record.kind == Kind.REFUND or record.amount == payment.amount
    return record.verdict in MOVED and is_whole and not record.is_outside


_TAKING, _GIVING = (Kind.AUTHORIZE, Kind.CAPTURE, Kind.VOID), (Kind.REFUND,)
# Orders first, since shares are paid after the capture; refunds last, when all that came in is written.
_PHASES = (
    (Payment.Kind.ORDER, _TAKING),
    (Payment.Kind.SHARE, _TAKING),
    (Payment.Kind.ORDER, _GIVING),
    (Payment.Kind.SHARE, _GIVING),
)


def _rebuild(payment: UUID, records: Sequence[Record], is_captured: bool, done: Repair) -> None:
    for record in records:
        if record.kind == Kind.REFUND:
            rebuilding.leave_old_key(payment, record)
    try:
        rebuilt = rebuilding.rebuild(payment, records, is_captured=is_captured)
    except rebuilding.StillOpen:
        done.left.add(payment)
        return
    done.operations += rebuilt.operations
    done.booked += rebuilt.booked
