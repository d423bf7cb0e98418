"""Records disputes from the provider's books, and finds a checkout's disputes (rule dispute.booked).

`record_dispute` must be called with the checkout locked.
"""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Exists, Max, OuterRef, QuerySet, Sum

from payments import ledger
from payments.discrepancies import kinds, reporting
from payments.discrepancies.definitions import DiscrepancyKind
from payments.models import Dispute, Movement, Payment
from payments.provider import DisputeRecord, DisputeStatus

Status = Dispute.Status
# What the payer said to the bank, in the first person, by the reason that the provider reports.
REASON_SENTENCES = {
    "product_not_received": "I did not get what I paid for.",
    "product_unacceptable": "What I got is not what I paid for.",
    "fraudulent": "I did not make this payment.",
    "unrecognized": "I do not know this payment.",
    "duplicate": "I was charged twice.",
    "credit_not_processed": "I was promised my money back, and did not get it.",
    "subscription_canceled": "I had cancelled before.",
}


class RecordedDispute(NamedTuple):
    """A recorded dispute, its previous status (None if the dispute is new), and whether anything has changed."""

    dispute: Dispute
    previous_status: str | None
    has_changed: bool


def payer_of(payment: Payment) -> str:
    """Return who made a payment: "mate" if it paid a share, else "customer"."""
    return "mate" if payment.kind == Payment.Kind.SHARE else "customer"


def reason_in_words(row: Dispute) -> str:
    """Return the reason for a dispute as a sentence. A reason that is not in REASON_SENTENCES is quoted."""
    payer = payer_of(row.payment)
    if row.reason in REASON_SENTENCES:
        return f"The {payer}’s reason: {quoted_reason(row)}"
    return f"The {payer}’s bank calls it {quoted_reason(row)}."


def quoted_reason(row: Dispute) -> str:
    """Return the reason for a dispute in quotation marks: the payer's sentence, or else the bank's word for it."""
    return f"“{REASON_SENTENCES.get(row.reason) or row.reason.replace('_', ' ')}”"


def blocking_dispute(checkout_uuid: UUID) -> Dispute | None:
    """Return an open dispute on a card of the checkout, or else a lost one. Both make a refund impossible."""
    return blocking_disputes_of(checkout_uuid).first()


def blocking_disputes_of(checkout_uuid: UUID | OuterRef) -> QuerySet[Dispute]:
    """Return the query for the dispute that `blocking_dispute` returns."""
    rows = Dispute.objects.filter(checkout_uuid=checkout_uuid, status__in=Dispute.STANDING)
    return rows.order_by("-status", "created_at")[:1]


def with_disputed(rows: QuerySet[Any], *, checkout: str = "pk") -> QuerySet[Any, Any]:
    """Add `is_disputed` to each row: whether the checkout is disputed. `checkout` is the column with its id.

    A checkout is disputed while a dispute is open, and after a dispute was lost.
    """
    annotated: QuerySet[Any, Any] = rows.annotate(
        is_disputed=Exists(blocking_disputes_of(OuterRef(checkout)))
    )
    return annotated


def blocking_dispute_of_row(row: Any) -> Dispute | None:
    """Return the dispute that `blocking_dispute` returns for a checkout.

    If the row comes from a query with `with_disputed` and had no such dispute, there is no further query.
    """
    return blocking_dispute(row.pk) if getattr(row, "is_disputed", True) else None


def open_disputes_of(checkout_uuid: UUID | OuterRef) -> QuerySet[Dispute]:
    """Return the open disputes on cards of the checkout."""
    return Dispute.objects.filter(checkout_uuid=checkout_uuid, status=Status.OPEN)


def has_open_dispute(checkout_uuid: UUID) -> bool:
    """Return whether a dispute on a card of the checkout is open."""
    dispute = blocking_dispute(checkout_uuid)
    return dispute is not None and dispute.status == Status.OPEN


def has_lost_dispute(checkout_uuid: UUID) -> bool:
    """Return whether a dispute on a card of the checkout is lost, so that its payer has the money back."""
    return Dispute.objects.filter(checkout_uuid=checkout_uuid, status=Status.LOST).exists()


class LostAmount(NamedTuple):
    """The amount that lost disputes returned to a payer, in minor units, and the time of the last loss."""

    amount: int
    at: datetime


def lost_amounts_by_payment(checkout_uuid: UUID) -> dict[UUID, LostAmount]:
    """Map the payments of a checkout to the amounts that lost disputes returned, without amounts of 0."""
    lost = Dispute.objects.filter(checkout_uuid=checkout_uuid, status=Status.LOST)
    sums = lost.values_list("payment").annotate(sum=Sum("movements__amount"), last=Max("closed_at"))
    return {payment: LostAmount(-amount, at) for payment, amount, at in sums if amount}


def record_dispute(payment: Payment, record: DisputeRecord, *, now: datetime) -> RecordedDispute | None:
    """Record the current state of a dispute and its new balance lines, as they are in the provider's books.

    A new dispute without balance lines, such as an inquiry, has not moved money. Such a dispute is not recorded, and
    None is returned. If the dispute and the payment have different currencies, the dispute is recorded and reported.
    Its lines are then not recorded, because the amount in the payment's currency is unknown.
    """
    existing = Dispute.objects.filter(payment=payment, reference=record.reference).first()
    if existing is None and not record.lines:
        return None
    previous_status = existing.status if existing else None
    dispute = existing or _create_dispute(payment, record, now)
    has_moved = _post_lines(dispute, record, now)
    has_changed = has_moved or previous_status != record.status or dispute.respond_by != record.respond_by
    dispute.respond_by = record.respond_by
    if dispute.status != record.status:
        _record_decision(dispute, record.status, now)
    if existing is None:
        _report(dispute, kinds.DISPUTED)
    if record.unknown_status:
        _report(dispute, kinds.DISPUTE_STATUS_UNKNOWN, theirs=record.unknown_status)
    if has_changed:
        dispute.save()
    return RecordedDispute(dispute, previous_status, has_changed)


def _create_dispute(payment: Payment, record: DisputeRecord, now: datetime) -> Dispute:
    dispute = Dispute.objects.create(
        payment=payment,
        checkout_uuid=payment.checkout_uuid,
        reference=record.reference,
        amount=record.amount,
        reason=record.reason,
        opened_at=record.opened_at,
        respond_by=record.respond_by,
        created_at=now,
    )
    if record.currency != payment.currency or record.amount > payment.amount:
        _report(dispute, kinds.DISPUTE_OF_ANOTHER_AMOUNT, theirs=f"{record.amount} {record.currency}")
    return dispute


def _post_lines(dispute: Dispute, record: DisputeRecord, now: datetime) -> bool:
    """Record the new balance lines of a dispute. Return whether any were recorded.

    While the capture of the payment is not recorded, the lines are not recorded either. Otherwise, the ledger would
    show that the dispute took money which the merchant never got.
    """
    is_captured = dispute.payment.movements.filter(kind=Movement.Kind.CAPTURED).exists()
    if record.currency != dispute.payment.currency or not is_captured:
        return False
    recorded = set(dispute.movements.values_list("reference", flat=True))
    new = [line for line in record.lines if line.reference not in recorded]
    for line in sorted(new, key=lambda line: line.at):
        kind = Movement.Kind.DISPUTE_REINSTATED if line.is_back else Movement.Kind.DISPUTE_WITHDRAWN
        amount = line.amount or dispute.amount
        ledger.record_movement(dispute.payment, kind, amount, line.reference, dispute, at=line.at, now=now)
    return bool(new)


def _record_decision(dispute: Dispute, status: DisputeStatus, now: datetime) -> None:
    """Record a decision by the provider, or record that the provider has reopened a decided dispute."""
    dispute.status = Status(status)
    is_open = dispute.status == Status.OPEN
    dispute.closed_at = None if is_open else now
    reporting.close_resolved(kinds.DISPUTE_LOST, dispute.pk, note=f"It is {status} now.", now=now)
    if not is_open:
        reporting.close_resolved(kinds.DISPUTED, dispute.pk, note=f"It was {status}.", now=now)
    if dispute.status == Status.LOST:
        _report(dispute, kinds.DISPUTE_LOST)
    elif is_open:
        _report(dispute, kinds.DISPUTED)


def _report(dispute: Dispute, kind: DiscrepancyKind, **facts: str) -> None:
    respond_by = dispute.respond_by.isoformat() if dispute.respond_by else None
    reporting.report(
        kind,
        dispute.pk,
        merchant=dispute.payment.merchant_id,
        checkout=str(dispute.checkout_uuid),
        reference=dispute.reference,
        amount=dispute.amount,
        currency=dispute.payment.currency,
        respond_by=respond_by,
        **facts,
    )
