"""Sync of a payment's refunds, ours and those of others, with the provider's books."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from checkout import outcomes, refunds, settling
from checkout.models import NO_CLAIM, Refund
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


def follow_refund(reading: Reading, told: RefundRecord) -> bool:
    """Record one refund as it is now; return whether anything has changed.

    A refund by others is recorded as an operation with the purpose `outside`, at the merchant's expense. If a
    settled refund has failed since, its return is recorded and reported. Rules sync.outside, refund.returned.
    """
    known = _operation_of(reading, told)
    operation = known or _adopt_refund(reading, told)
    if operation is None:
        return False
    if (told.amount, told.currency) != (operation.amount, reading.payment.currency):
        reporting.report_operation(
            operation, kinds.REFUND_OF_ANOTHER_AMOUNT, theirs=f"{told.amount} {told.currency}"
        )
        return False
    if operation.ended_at is not None and operation.ended_at >= reading.asked_at:
        return False  # its end was recorded after these books were requested
    verdict = Verdict.SUCCEEDED if told.has_returned and known is None else told.verdict
    has_changed = _record_end(reading, operation, told, verdict) or known is None
    if told.verdict == Verdict.FAILED and operation.state == State.SUCCEEDED:
        has_changed |= _come_back(reading, operation, told)
    return has_changed


def _operation_of(reading: Reading, told: RefundRecord) -> Operation | None:
    """Return our operation for a refund, or None for a refund by others.

    The provider's own id is compared first. A second refund can name an operation that has an id already. It
    was then carried out twice, or another person named our operation in it. Such a refund is not ours, and it
    is reported.
    """
    own = reading.payment.operations.filter(kind=Kind.REFUND).select_related("payment", "resends")
    by_reference = own.filter(reference=told.reference).first()
    named = own.filter(pk=told.operation).first() if told.operation and by_reference is None else None
    if named is not None and named.reference:
        reporting.report_operation(named, kinds.SUCCEEDED_UNDER_AN_OLD_KEY, amount=told.amount)
        return None
    return by_reference or named


def _adopt_refund(reading: Reading, told: RefundRecord) -> Operation | None:
    """Write a refund that has no row here, and return its operation.

    It was made by others or, in a restored database, it can be one of our own that was lost. Returns None for
    a refund that moved no money, or whose payment was never captured.
    """
    moved = told.has_returned or told.verdict in (Verdict.SUCCEEDED, Verdict.PENDING)
    charged = reading.payment.movements.filter(kind=Movement.Kind.CAPTURED)
    if not moved or told.amount <= 0 or not charged.exists():
        return None
    operation = Operation(
        payment=reading.payment,
        kind=Kind.REFUND,
        amount=told.amount,
        state=State.PENDING,
        reference=told.reference,
        attempts=1,
        first_sent_at=reading.checkout.created_at,
        last_sent_at=reading.now,
        actor=PUMP.actor,
        created_at=reading.now,
    )
    _say_what_for(reading, operation, told)
    if operation.purpose != Purpose.OUTSIDE:
        operation.next_attempt_at = reading.now  # the result of a refund by others is only in the books
    planning.write(operation)
    if reading.is_restored and told.operation is not None and operation.purpose == Purpose.OUTSIDE:
        reporting.report_operation(operation, kinds.RESTORED_REFUND, checkout=str(reading.checkout.pk))
    return operation


def _is_of_share(reading: Reading, told: RefundRecord) -> bool:
    """Return whether the refund is the reimbursement of a share that the restored database knows."""
    shares = reading.checkout.payment_requests
    return told.share is not None and shares.filter(pk=told.share).exists()


def _say_what_for(reading: Reading, operation: Operation, told: RefundRecord) -> None:
    """Set the purpose of a refund that had no row here.

    If a restore has lost one of our refunds, its id and purpose come from the metadata. Any other refund is
    by others.
    """
    is_known = told.operation is None or Operation.objects.filter(pk=told.operation).exists()
    has_aim = told.refund is not None or _is_of_share(reading, told)
    if not reading.is_restored or is_known or not has_aim:
        operation.purpose = Purpose.OUTSIDE
        operation.resends = settling.returned_on(reading.payment, at_least=told.amount)
        _end_links(reading)
        return
    operation.pk = told.operation or operation.pk
    operation.share_uuid, operation.refund_uuid = told.share, told.refund
    operation.purpose = Purpose.REIMBURSEMENT if told.share else Purpose.REFUND_PART
    if told.refund and not Refund.objects.filter(pk=told.refund).exists():
        refunds.restore(reading.checkout, told.refund)


def _end_links(reading: Reading) -> None:
    """End the links of an order that is refunded at the provider (rule sync.links)."""
    links = reading.checkout.payment_requests.filter(status=ShareStatus.OPEN)
    links.update(status=ShareStatus.CANCELLED, ended_at=reading.now, **NO_CLAIM)


def _record_end(reading: Reading, operation: Operation, told: RefundRecord, verdict: Verdict) -> bool:
    """Record the state of an operation; return whether the state is new.

    A refund that the provider settled and took back before the service knew of its settlement has failed.
    """
    outcome = Outcome(verdict, reference=told.reference, reason=told.reason, amount=told.amount)
    if operation.ended_at is None:
        is_new = (operation.state, verdict) != (State.PENDING, Verdict.PENDING)
        return is_new and outcomes.conclude(reading.checkout, operation, outcome, now=reading.now)
    if operation.state in REFUSED and verdict in (Verdict.SUCCEEDED, Verdict.PENDING):
        reporting.report_operation(operation, kinds.REFUND_AFTER_REFUSAL, amount=told.amount)
        if verdict == Verdict.SUCCEEDED:
            outcomes.recover(reading.checkout, operation, told.reference, reading.now)
            return True
    return False


def _come_back(reading: Reading, operation: Operation, told: RefundRecord) -> bool:
    """Record that a settled refund was returned; return whether that is new."""
    returned = Movement.Kind.REFUND_RETURNED
    if operation.movements.filter(kind=returned).exists():
        return False
    operation.reason = told.reason or "refused"
    operation.save(update_fields=["reason"])
    reference = f"{told.reference} returned"
    ledger.record(
        reading.payment, returned, operation.amount, reference, operation, at=told.at, now=reading.now
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


def report_missing(reading: Reading, told: Sequence[RefundRecord]) -> None:
    """Report each recorded refund that the books lack.

    A refund counts only if it was recorded a while before the books were requested.
    """
    there = {record.reference for record in told} | {record.operation for record in told}
    rows = reading.payment.movements.filter(
        kind=Movement.Kind.REFUNDED, recorded_at__lt=reading.asked_at - reconciliation.SKEW
    )
    for movement in rows.select_related("operation__payment"):
        operation = movement.operation
        if operation is not None and not there & {movement.reference, operation.reference, operation.pk}:
            reporting.report_operation(operation, kinds.MISSING_THERE, amount=-movement.amount)
