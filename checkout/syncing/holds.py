"""Follows what the provider's books have about a payment's hold. One that no order waits for is released."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkout import outcomes, share_outcomes
from checkout.syncing import captures
from payments import open_operations
from payments.discrepancies import kinds, reporting
from payments.discrepancies.definitions import DiscrepancyKind
from payments.models import Operation, Payment
from payments.provider import Books, Outcome, Verdict

if TYPE_CHECKING:
    from checkout.syncing.sync import Reading

Status = Payment.Status
GONE = (Status.DECLINED, Status.VOIDED)


def follow(reading: Reading, books: Books) -> bool:
    """Release a hold on a card that counts as declined, and report one that the two books disagree about."""
    payment = Payment.objects.get(pk=reading.payment.pk)
    ended = payment.operations.filter(ended_at__gte=reading.asked_at)
    if payment.operations.filter(ended_at=None).exists() or ended.exists():
        return False  # it is being asked about, or was since
    if reading.is_restored and payment.status == Status.AUTHORIZING:
        return _let_go(reading, payment, books)
    if books.is_held and payment.status in GONE:
        is_released = payment.status == Status.VOIDED
        _report(payment, kinds.HOLD_NOT_RELEASED if is_released else kinds.HELD_AFTER_REFUSAL)
        if not is_released:
            share_outcomes.release(payment, reading.now)
            return True
    if payment.status == Status.AUTHORIZED and not books.is_held and books.capture is None:
        if reading.is_restored:  # its release was lost, and what it was released for
            void, done = captures.written(reading, Operation.Kind.VOID), Outcome(Verdict.SUCCEEDED)
            return outcomes.conclude(reading.checkout, void, done, now=reading.now)
        _report(payment, kinds.OUTSIDE_VOID)
    return False


def _let_go(reading: Reading, payment: Payment, books: Books) -> bool:
    """Release a hold that a restore has lost: its two minutes are over, and the merchant may not have heard of it."""
    open_operations.abandon(payment, reading.now)
    if books.is_held:
        share_outcomes.release(payment, reading.now)
    else:
        Payment.objects.filter(pk=payment.pk).update(status=Status.VOIDED)
    return True


def _report(payment: Payment, kind: DiscrepancyKind) -> None:
    facts = {"checkout": str(payment.checkout_uuid), "payment": str(payment.pk)}
    reporting.report(kind, payment.pk, merchant=payment.merchant_id, **facts)
