"""Giving everything back: accepted at once, settled by the provider later."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import IntegrityError, transaction

from checkout.models import Checkout, Refund
from checkout.settlement import FINISH_OPERATIONS
from checkout.states import Status
from checkout.transitions import OperationInProgress, StateConflict
from config.lib import clock, failpoint, wakeup
from payments import operations
from payments.cause import PUMP, Cause
from payments.models import Merchant, Operation
from payments.provider import Outcome

State = Operation.State


class NotRefundable(StateConflict):
    """Only a captured checkout can be refunded, once."""


class RefundRefConflict(Exception):
    """The merchant has used this reference for another checkout's refund."""


class PartialRefundNotSupported(Exception):
    """Only the full amount can be refunded."""

    def __init__(self, amount: int) -> None:
        super().__init__(f"Only the full amount of {amount} can be refunded.")
        self.amount = amount


class Accepted(NamedTuple):
    """The refund under this reference, and whether this call made it."""

    refund: Refund
    is_new: bool


def accept(
    merchant: Merchant,
    checkout_uuid: UUID,
    *,
    ref: str,
    reason: str | None = None,
    amount: int | None = None,
    cause: Cause,
) -> Accepted:
    """Accept to give everything back: `captured` becomes `refunding`. A repeated ref makes nothing new.

    Raises Checkout.DoesNotExist, NotRefundable, RefundRefConflict, PartialRefundNotSupported,
    OperationInProgress. SPEC.md 2.4, 3.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid, merchant)
        existing = Refund.objects.filter(merchant=merchant, merchant_refund_ref=ref).first()
        if existing is not None:
            return Accepted(_of(existing, checkout), is_new=False)
        _check_refundable(checkout, amount)
        now = clock.now()
        refund = Refund(
            merchant=merchant,
            checkout=checkout,
            merchant_refund_ref=ref,
            reason=reason,
            amount=checkout.amount,
            created_at=now,
        )
        _write(refund)
        _begin(checkout, refund, now, cause)
        return Accepted(refund, is_new=True)


def _write(refund: Refund) -> None:
    """Another checkout, under another lock, may have taken the reference at this very moment."""
    try:
        with transaction.atomic():
            refund.save(force_insert=True)
    except IntegrityError as error:
        raise RefundRefConflict from error


def _of(refund: Refund, checkout: Checkout) -> Refund:
    if refund.checkout_id != checkout.pk:
        raise RefundRefConflict
    return refund


def _check_refundable(checkout: Checkout, amount: int | None) -> None:
    if amount is not None and amount != checkout.amount:
        raise PartialRefundNotSupported(checkout.amount)
    undecided = checkout.status in (Status.CREATED, Status.AUTHORIZED, Status.CAPTURED)
    if undecided and operations.open_operation(checkout.pk) is not None:
        raise OperationInProgress
    if checkout.status != Status.CAPTURED:
        raise NotRefundable(checkout.status)


def _begin(checkout: Checkout, refund: Refund, now: datetime, cause: Cause) -> None:
    checkout.move(Status.REFUNDING, cause, now)
    if checkout.payment is not None:
        operations.plan(checkout.payment, Operation.Kind.REFUND, now=now, cause=cause, refund_uuid=refund.pk)
    wakeup.after_commit(FINISH_OPERATIONS)


def settle(operation: Operation, outcome: Outcome) -> None:
    """Record what the provider said of a refund: settled, failed (back to `captured`), or not yet."""
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(operation.payment.checkout_uuid)
        refund = Refund.objects.select_for_update().get(pk=_refund_of(operation))
        now = clock.now()
        settled = operations.record(operation, outcome, now=now)
        if refund.status == Refund.Status.PENDING:
            _conclude(checkout, refund, settled, now)
        failpoint.reach("before_commit", settled.kind, checkout.pk)
    failpoint.reach("after_commit", settled.kind, checkout.pk)


def _conclude(checkout: Checkout, refund: Refund, leg: Operation, now: datetime) -> None:
    if leg.state == State.SUCCEEDED:
        _succeed(checkout, refund, now)
    elif leg.state in (State.FAILED, State.DECLINED):
        _fail(refund, leg.reason)
        checkout.move(Status.CAPTURED, PUMP, now)


def _refund_of(operation: Operation) -> UUID:
    if operation.refund_uuid is None:
        raise ValueError(f"Operation {operation.pk} is no leg of a refund.")
    return operation.refund_uuid


def _succeed(checkout: Checkout, refund: Refund, now: datetime) -> None:
    refund.status, refund.settled_at = Refund.Status.SETTLED, now
    refund.save(update_fields=["status", "settled_at"])
    checkout.move(Status.REFUNDED, PUMP, now, refunded_amount=refund.amount, last_refund_at=now)


def _fail(refund: Refund, reason: str) -> None:
    refund.status, refund.failure_reason = Refund.Status.FAILED, reason or "refused"
    refund.save(update_fields=["status", "failure_reason"])
