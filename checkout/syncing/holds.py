"""Compares a payment's hold with the provider's books, and reports a difference."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from checkout import outcomes, share_outcomes
from checkout.syncing import captures
from payments import open_operations, planning
from payments.discrepancies import kinds, reporting
from payments.discrepancies.definitions import DiscrepancyKind
from payments.models import Operation, Payment
from payments.provider import Books, Outcome, Verdict

if TYPE_CHECKING:
    from uuid import UUID

    from checkout.syncing.sync import Reading

Status = Payment.Status
ENDED_STATUSES = (Status.DECLINED, Status.VOIDED)


def sync_hold(reading: Reading, books: Books) -> bool:
    """Compare the hold in the provider's books with our records, and report a difference.

    If the provider holds money although the card counts as declined here, the hold is also released. Returns whether
    anything has changed. Rule sync.holds.
    """
    payment = Payment.objects.get(pk=reading.payment.pk)
    ended = payment.operations.filter(ended_at__gte=reading.asked_at)
    if payment.operations.filter(ended_at=None).exists() or ended.exists():
        # An operation is open, or has ended since the books were requested. The books might therefore be out of date.
        return False
    if reading.is_restored and payment.status == Status.AUTHORIZING:
        return _release_lost_hold(reading, payment, books)
    if books.is_held and payment.status in ENDED_STATUSES:
        is_released = payment.status == Status.VOIDED
        _report_payment(payment, kinds.HOLD_NOT_RELEASED if is_released else kinds.HELD_AFTER_REFUSAL)
        if not is_released:
            share_outcomes.release_payment(payment, reading.now)
            return True
    if payment.status == Status.AUTHORIZED and not books.is_held and books.capture is None:
        if reading.is_restored:
            # The restore has lost the record of the release, so the release is recorded again.
            void, success = (
                captures.rewrite_operation(reading, Operation.Kind.VOID),
                Outcome(Verdict.SUCCEEDED),
            )
            return outcomes.conclude_operation(reading.checkout, void, success, now=reading.now)
        _report_payment(payment, kinds.OUTSIDE_VOID)
    return False


def can_hold_late(payment_uuid: UUID, now: datetime) -> bool:
    """Return whether a delayed call can still hold the card of a declined payment (rule sync.late_holds).

    The refusal is then about only one of several calls.
    """
    declined = Operation.objects.filter(payment=payment_uuid, payment__status=Status.DECLINED)
    authorization = declined.filter(kind=Operation.Kind.AUTHORIZE).order_by("created_at").last()
    return (
        authorization is not None
        and planning.was_sent_again(authorization)
        and not planning.calls_have_ended(authorization, now)
    )


def _release_lost_hold(reading: Reading, payment: Payment, books: Books) -> bool:
    """Release a hold whose record was lost when the database was restored.

    The hold is not recorded, because its two minutes are over and the merchant might not have been notified of it.
    """
    open_operations.abandon_payment(payment, reading.now)
    if books.is_held:
        share_outcomes.release_payment(payment, reading.now)
    else:
        Payment.objects.filter(pk=payment.pk).update(status=Status.VOIDED)
    return True


def _report_payment(payment: Payment, kind: DiscrepancyKind) -> None:
    facts = {"checkout": str(payment.checkout_uuid), "payment": str(payment.pk)}
    reporting.report(kind, payment.pk, merchant=payment.merchant_id, **facts)
