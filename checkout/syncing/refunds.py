"""Compares a payment's refunds with the provider's books, and records refunds that others made there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from checkout import outcomes, refunds, settling
from checkout.models import NO_CLAIM
from checkout.states import ShareStatus
from payments import ledger, planning
from payments.cause import PUMP
from payments.discrepancies import kinds, reporting
from payments.inquiring import reconciliation
from payments.models import Movement, Operation
from payments.provider import Outcome, RefundRecord, Verdict

if TYPE_CHECKING:
    from checkout.syncing.sync import Reading

Kind, State, Purpose = Operation.Kind, Operation.State, Operation.Purpose
REFUSED = (State.FAILED, State.DECLINED)


def sync_refund(reading: Reading, record: RefundRecord) -> bool:
    """Record the current state of a refund; return whether anything has changed.

    A refund that others made at the provider is recorded as an operation with the purpose `outside`, at the
    merchant's expense. If a refund is settled here but failed in the books, it was returned, and this is recorded.
    Rules sync.outside, refund.returned.
    """
    existing = _operation_of(reading, record)
    operation = existing or _adopt_refund(reading, record)
    if operation is None:
        return False
    if (record.amount, record.currency) != (operation.amount, reading.payment.currency):
        reporting.report_operation(
            operation, kinds.REFUND_OF_ANOTHER_AMOUNT, theirs=f"{record.amount} {record.currency}"
        )
        return False
    if operation.ended_at is not None and operation.ended_at >= reading.asked_at:
        # The end of the operation was recorded after these books were requested, so the books might be out of date.
        return False
    verdict = Verdict.SUCCEEDED if record.has_returned and existing is None else record.verdict
    has_changed = _record_refund_outcome(reading, operation, record, verdict) or existing is None
    if record.verdict == Verdict.FAILED and operation.state == State.SUCCEEDED:
        has_changed |= _record_return(reading, operation, record)
    return has_changed


def _operation_of(reading: Reading, record: RefundRecord) -> Operation | None:
    """Return our operation for a refund, or None if the refund was made by others.

    The operation is found by the provider's refund id, or else by the operation id in the refund. If that operation
    already has the id of another refund, it was carried out twice, or someone copied its id into their own refund.
    The second refund is then reported, and None is returned.
    """
    ours = reading.payment.operations.filter(kind=Kind.REFUND).select_related("payment", "resends")
    by_reference = ours.filter(reference=record.reference).first()
    named = ours.filter(pk=record.operation).first() if record.operation and by_reference is None else None
    if named is not None and named.reference:
        reporting.report_operation(named, kinds.SUCCEEDED_UNDER_AN_OLD_KEY, amount=record.amount)
        return None
    return by_reference or named


def _adopt_refund(reading: Reading, record: RefundRecord) -> Operation | None:
    """Write an operation for a refund that has no row in our database, and return the operation.

    The refund was made by others. In a restored database, it can also be our refund whose row was lost. Returns None
    if the refund did not move money, or if its payment was never captured.
    """
    moved = record.has_returned or record.verdict in (Verdict.SUCCEEDED, Verdict.PENDING)
    charged = reading.payment.movements.filter(kind=Movement.Kind.CAPTURED)
    if not moved or record.amount <= 0 or not charged.exists():
        return None
    operation = Operation(
        payment=reading.payment,
        kind=Kind.REFUND,
        amount=record.amount,
        state=State.PENDING,
        reference=record.reference,
        attempts=1,
        first_sent_at=reading.checkout.created_at,
        last_sent_at=reading.now,
        actor=PUMP.actor,
        created_at=reading.now,
    )
    _set_purpose(reading, operation, record)
    if operation.purpose != Purpose.OUTSIDE:
        # Only our own refunds are looked up. The result of a refund that others made is read from the books.
        operation.next_attempt_at = reading.now
    planning.insert_operation(operation)
    if reading.is_restored and record.operation is not None and operation.purpose == Purpose.OUTSIDE:
        reporting.report_operation(operation, kinds.RESTORED_REFUND, checkout=str(reading.checkout.pk))
    return operation


def _has_purpose(reading: Reading, record: RefundRecord) -> bool:
    """Return whether the share or the order's refund for which a lost refund was made is in our database.

    A lost refund of the order is recreated. Returns False if it cannot be recreated.
    """
    if record.refund is not None:
        return refunds.restore_refund(reading.checkout, record.refund)
    shares = reading.checkout.payment_requests
    return record.share is not None and shares.filter(pk=record.share).exists()


def _set_purpose(reading: Reading, operation: Operation, record: RefundRecord) -> None:
    """Set the purpose of a refund that had no row in our database.

    If a restore has lost one of our refunds, its id and its purpose are read from its metadata at the provider. Any
    other refund was made by others, so it gets the purpose `outside`.
    """
    is_known = record.operation is None or Operation.objects.filter(pk=record.operation).exists()
    if not reading.is_restored or is_known or not _has_purpose(reading, record):
        operation.purpose = Purpose.OUTSIDE
        operation.resends = settling.returned_refund_on(reading.payment, at_least=record.amount)
        _cancel_links(reading)
        return
    operation.pk = record.operation or operation.pk
    operation.share_uuid, operation.refund_uuid = record.share, record.refund
    operation.purpose = Purpose.REIMBURSEMENT if record.share else Purpose.REFUND_PART


def _cancel_links(reading: Reading) -> None:
    """Cancel the open pay links of an order that others refunded at the provider (rule sync.links)."""
    links = reading.checkout.payment_requests.filter(status=ShareStatus.OPEN)
    links.update(status=ShareStatus.CANCELLED, ended_at=reading.now, **NO_CLAIM)


def _record_refund_outcome(
    reading: Reading, operation: Operation, record: RefundRecord, verdict: Verdict
) -> bool:
    """Record the outcome of a refund; return whether anything has changed.

    If a refund counts as refused here but has succeeded at the provider, this is reported, and the refund is recorded
    as succeeded.
    """
    outcome = Outcome(verdict, reference=record.reference, reason=record.reason, amount=record.amount)
    if operation.ended_at is None:
        is_new = (operation.state, verdict) != (State.PENDING, Verdict.PENDING)
        return is_new and outcomes.conclude_operation(reading.checkout, operation, outcome, now=reading.now)
    if operation.state in REFUSED and verdict in (Verdict.SUCCEEDED, Verdict.PENDING):
        reporting.report_operation(operation, kinds.REFUND_AFTER_REFUSAL, amount=record.amount)
        if verdict == Verdict.SUCCEEDED:
            outcomes.apply_late_success(reading.checkout, operation, record.reference, reading.now)
            return True
    return False


def _record_return(reading: Reading, operation: Operation, record: RefundRecord) -> bool:
    """Record that a settled refund was returned. Return False if this was already recorded."""
    returned = Movement.Kind.REFUND_RETURNED
    if operation.movements.filter(kind=returned).exists():
        return False
    operation.reason = record.reason or "refused"
    operation.save(update_fields=["reason"])
    reference = f"{record.reference} returned"
    ledger.record_movement(
        reading.payment, returned, operation.amount, reference, operation, at=record.at, now=reading.now
    )
    if operation.purpose == Purpose.OUTSIDE:
        reporting.report_operation(
            operation,
            kinds.OUTSIDE_REFUND_FAILED,
            checkout=str(reading.checkout.pk),
            amount=operation.amount,
            reason=operation.reason,
        )
    return True


def report_missing(reading: Reading, records: Sequence[RefundRecord]) -> None:
    """Report each refund that is recorded here but is missing in the provider's books.

    A refund that was recorded shortly before the books were requested is not reported, because the provider's clock
    can differ from ours.
    """
    there = {record.reference for record in records} | {record.operation for record in records}
    rows = reading.payment.movements.filter(
        kind=Movement.Kind.REFUNDED, recorded_at__lt=reading.asked_at - reconciliation.SKEW
    )
    for movement in rows.select_related("operation__payment"):
        operation = movement.operation
        if operation is not None and not there & {movement.reference, operation.reference, operation.pk}:
            reporting.report_operation(operation, kinds.MISSING_THERE, amount=-movement.amount)
