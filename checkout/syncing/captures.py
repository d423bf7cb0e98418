"""Compares a payment's capture with the provider's books, and records a capture that is missing here."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from checkout import outcomes, share_outcomes
from payments import open_operations, planning
from payments.cause import PUMP
from payments.discrepancies import kinds, reporting
from payments.discrepancies.definitions import DiscrepancyKind
from payments.inquiring import reconciliation
from payments.models import Movement, Operation, Payment
from payments.provider import Books, CaptureRecord, Outcome, Verdict

if TYPE_CHECKING:
    from checkout.syncing.sync import Reading

Kind: TypeAlias = Operation.Kind
State: TypeAlias = Operation.State


def sync_capture(reading: Reading, record: CaptureRecord | None) -> bool:
    """Record the capture that is in the provider's books; return whether anything has changed.

    A capture of a different amount is only reported. A capture that the service never requested is also only reported,
    and is recorded when the merchant calls capture later. In a restored database, it is recorded as our own capture,
    because the service might have requested it before the restore. Rule sync.capture.
    """
    payment = reading.payment
    if record is None:
        return False
    recorded = payment.movements.filter(kind=Movement.Kind.CAPTURED).first()
    if (record.amount, record.currency) != (payment.amount, payment.currency):
        _report_capture(reading, kinds.CAPTURED_ANOTHER_AMOUNT, record)
        return False
    if recorded is not None:
        return False
    capture = (
        payment.operations.filter(kind=Kind.CAPTURE).select_related("payment").order_by("created_at").last()
    )
    if capture is None and not reading.is_restored:
        _report_capture(reading, kinds.OUTSIDE_CAPTURE, record)
        return False
    _record_capture(reading, capture or _write_lost_capture(reading), record)
    return True


def _record_capture(reading: Reading, capture: Operation, record: CaptureRecord) -> None:
    if capture.ended_at is not None:
        outcomes.apply_late_success(reading.checkout, capture, record.reference, reading.now)
        return
    outcome = Outcome(Verdict.SUCCEEDED, reference=record.reference, amount=record.amount)
    outcomes.conclude_operation(reading.checkout, capture, outcome, now=reading.now)


def _write_lost_capture(reading: Reading) -> Operation:
    """Write a capture that a restore has lost, and also its hold if that was lost. Return the capture.

    The capture is written before the hold. Otherwise, the hold would be released if the order or share no longer
    waits for a card.
    """
    _make_payment_current(reading)
    operations = reading.payment.operations.filter(ended_at=None).select_related("payment")
    planned = operations.filter(kind=Kind.CAPTURE).first()
    capture = planned or rewrite_operation(reading, Kind.CAPTURE, State.PLANNED)
    if reading.payment.status == Payment.Status.AUTHORIZING:
        held = operations.filter(kind=Kind.AUTHORIZE).first() or rewrite_operation(reading, Kind.AUTHORIZE)
        outcomes.conclude_operation(reading.checkout, held, Outcome(Verdict.SUCCEEDED), now=reading.now)
    return capture


def _make_payment_current(reading: Reading) -> None:
    """Make the captured card the current card of its order or share again.

    If another card is current in the restored database, that card is given up.
    """
    payment = reading.payment
    current = open_operations.live_payment(payment.subject)
    if payment.abandoned_at is not None:
        if current is not None:
            open_operations.abandon_payment(current.payment, reading.now)
        Payment.objects.filter(pk=payment.pk).update(abandoned_at=None)
        payment.abandoned_at = None
    if payment.kind == Payment.Kind.SHARE:
        share_outcomes.resume_paying(payment.subject, reading.now)


def rewrite_operation(reading: Reading, kind: Operation.Kind, state: State = State.IN_FLIGHT) -> Operation:
    """Write one of our operations again, because a restore has lost it. Return the operation."""
    payment = reading.payment
    operation = Operation(
        payment=payment,
        kind=kind,
        amount=payment.amount,
        state=state,
        # The restore has lost when the operation was sent. It therefore counts as sent twice, at the two extremes: when
        # the order was created, and now.
        attempts=2,
        first_sent_at=reading.checkout.created_at,
        last_sent_at=reading.now,
        actor=PUMP.actor,
        created_at=reading.now,
    )
    planning.insert_operation(operation)
    return operation


def report_missing(reading: Reading, books: Books) -> None:
    """Report a capture that is recorded here but is missing in the provider's books.

    A capture that was recorded shortly before the books were requested is not reported, because the provider's clock
    can differ from ours.
    """
    recorded = reading.payment.movements.filter(
        kind=Movement.Kind.CAPTURED, recorded_at__lt=reading.asked_at - reconciliation.SKEW
    )
    movement = recorded.select_related("operation").first()
    if movement is not None and movement.operation is not None and books.capture is None:
        reporting.report_operation(movement.operation, kinds.MISSING_THERE, amount=movement.amount)


def _report_capture(reading: Reading, kind: DiscrepancyKind, record: CaptureRecord) -> None:
    payment = reading.payment
    facts = {"checkout": str(payment.checkout_uuid), "payment": str(payment.pk)}
    reporting.report(
        kind,
        payment.pk,
        merchant=payment.merchant_id,
        amount=record.amount,
        currency=record.currency,
        **facts,
    )
