"""What time does to a checkout: a hold lapses, an unpaid order expires, a silent bank is waited for no longer."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import events, settlement
from checkout.models import Checkout
from checkout.states import Status, VoidReason
from config.lib import clock, wakeup
from payments import due, operations
from payments.cause import PUMP, Cause
from payments.models import Operation, Payment

CHALLENGE = timedelta(minutes=10)
Kind, State = Operation.Kind, Operation.State


def keep(checkout: Checkout, now: datetime) -> bool:
    """Let a locked checkout lapse or expire if its time has passed and no card operation is open.

    Whoever looks at a checkout first calls this. Returns whether it moved. An authorization that the bank is
    silent about for a minute does not keep an unpaid checkout alive.
    """
    if not (checkout.has_lapsed(now) or checkout.has_expired(now)):
        return False
    found = operations.open_operation(checkout.pk)
    if found is not None and not abandon(found, now):
        return False
    if checkout.status == Status.AUTHORIZED:
        void(checkout, VoidReason.AUTH_EXPIRED, at=checkout.capture_before or now, now=now, cause=PUMP)
    else:
        checkout.move(Status.EXPIRED, PUMP, now, expired_at=checkout.payable_until)
    return True


def keep_of(checkout_uuid: UUID) -> None:
    """As `keep`, for a checkout that is not locked yet."""
    with transaction.atomic(durable=True):
        keep(Checkout.objects.locked(checkout_uuid), clock.now())


def void(checkout: Checkout, reason: VoidReason, *, at: datetime, now: datetime, cause: Cause) -> None:
    """End it, as of `at`. What was held is released by the pump, repeated until the provider confirms."""
    held = checkout.status == Status.AUTHORIZED
    checkout.move(Status.VOIDED, cause, at, voided_at=at, void_reason=reason)
    if held and checkout.payment is not None:
        operations.plan(checkout.payment, Kind.VOID, now=now, cause=cause)
        wakeup.after_commit(settlement.FINISH_OPERATIONS)
        events.voided(checkout, at)


def abandon(operation: Operation, now: datetime) -> bool:
    """Stop waiting for a bank that has been silent for a minute: a hold that is found later is voided."""
    late = operation.state != State.NEEDS_ACTION or now - operation.created_at > CHALLENGE
    if operation.kind != Kind.AUTHORIZE or not late or now - operation.created_at < due.PATIENT_FOR:
        return False
    Payment.objects.filter(pk=operation.payment_id, abandoned_at=None).update(abandoned_at=now)
    return True


def stop_waiting(operation: Operation) -> None:
    """The bank has not heard of it within the payer's minute: they may pay again, and what arrives is released."""
    with transaction.atomic(durable=True):
        Checkout.objects.locked(operation.payment.checkout_uuid)
        if abandon(operation, clock.now()):
            rows = Payment.objects.filter(pk=operation.payment_id, decline_reason="")
            rows.update(decline_reason="never_arrived")
