"""What time does to a checkout: a hold lapses, an unpaid order expires, a silent bank is waited for no longer."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef

from checkout import events, settlement, shares, states
from checkout.models import Checkout, Own
from checkout.states import Status, VoidReason
from config.lib import clock, wakeup
from config.lib.prepared import Prepared
from payments import due, operations
from payments.cause import PUMP, Cause
from payments.models import Operation, Payment

CHALLENGE = timedelta(minutes=10)
Kind, State = Operation.Kind, Operation.State


def keep(checkout: Checkout, now: datetime) -> bool:
    """Let a locked checkout lapse or expire if its time has passed and no card operation is open.

    Whoever looks at a checkout first calls this. Returns whether it moved. An authorization that the bank is
    silent about for a minute does not keep an unpaid checkout alive.
    Rules lapse.whoever, expiry.open_operation.
    """
    if not (checkout.has_lapsed(now) or checkout.has_expired(now)):
        return False
    found = operations.open_operation(checkout.pk)
    if found is not None and not abandon(checkout, found, now):
        return False
    _end(checkout.status, [checkout], now)
    return True


def keep_of(checkout_uuid: UUID) -> None:
    """As `keep`, for a checkout that is not locked yet."""
    with transaction.atomic(durable=True):
        keep(Checkout.objects.locked(checkout_uuid), clock.now())


def oldest(status: Status) -> datetime | None:
    """Return the deadline that has waited longest for somebody to keep it, None where none has passed.

    What has a card operation open waits for that.
    """
    late = Checkout.objects.late(status).exclude(Exists(operations.open_on(OuterRef("pk"))))
    return late.values_list(states.DEADLINES[status], flat=True).first()


def keep_due(status: Status, limit: int) -> int:
    """As `keep`, for up to `limit` late checkouts of a status in one transaction; return how many moved.

    Left to others: what is locked, and what has a card operation open. Rule lapse.together.
    """
    with transaction.atomic(durable=True):
        late = {checkout.pk: checkout for checkout in _late(status, limit).all()}
        # The statement that locked them may not have seen an operation that began while it ran.
        for operation in operations.open_on_any(late):
            late.pop(operation.payment.subject, None)
        if late:
            _end(status, list(late.values()), clock.now())
    return len(late)


@cache
def _late(status: Status, limit: int) -> Prepared[Checkout]:
    rows = Checkout.objects.late(status).exclude(Exists(operations.open_on(OuterRef("pk"))))
    locked = rows.select_for_update(of=("self",), skip_locked=True).only(*_ENDING)
    return Prepared(lambda: locked[:limit])


# What an end needs of a checkout.
_ENDING = ("status", "merchant", "merchant_order_id", "payment", "people", *states.DEADLINES.values())


def _end(status: str, checkouts: Sequence[Checkout], now: datetime) -> None:
    """Void what is held and let expire what is unpaid, each as of its own deadline."""
    deadline = Own(states.DEADLINES[Status(status)])
    if status == Status.AUTHORIZED:
        Checkout.objects.move(
            checkouts, Status.VOIDED, PUMP, deadline, voided_at=deadline, void_reason=VoidReason.AUTH_EXPIRED
        )
        _release(checkouts, now, PUMP)
    else:
        Checkout.objects.move(checkouts, Status.EXPIRED, PUMP, deadline, expired_at=deadline)
    shares.end_drafts(checkouts, now)


def cancel(checkout: Checkout, *, note: str, now: datetime, cause: Cause) -> None:
    """Void a locked checkout, held or not yet paid, because its merchant says so."""
    was_held = checkout.status == Status.AUTHORIZED
    reason = VoidReason.MERCHANT_CANCEL
    checkout.move(Status.VOIDED, cause, now, voided_at=now, void_reason=reason, cancel_note=note)
    shares.end_drafts([checkout], now)
    if was_held:
        _release([checkout], now, cause)


def _release(checkouts: Sequence[Checkout], now: datetime, cause: Cause) -> None:
    """What was held is released by the pump, repeated until the provider confirms; the merchants are told."""
    payments = [checkout.payment_id for checkout in checkouts if checkout.payment_id]
    operations.plan(payments, Kind.VOID, now=now, cause=cause)
    wakeup.after_commit(shares.FINISH_OPERATIONS)
    events.voided(checkouts)


def abandon(checkout: Checkout, operation: Operation, now: datetime) -> bool:
    """Stop waiting for a bank that has been silent for a minute: a hold that is found later is voided.

    Belongs under the checkout's lock, with both read there; returns whether nobody waits for it any more.
    Rule pay.another_card.
    """
    if operation.kind != Kind.AUTHORIZE or operation.ended_at is not None:
        return False
    age = now - operation.created_at
    if age < (CHALLENGE if operation.state == State.NEEDS_ACTION else due.PATIENT_FOR):
        return False
    Payment.objects.filter(pk=operation.payment_id, abandoned_at=None).update(abandoned_at=now)
    if shares.is_of_share(operation.payment):
        shares.free_of(checkout, operation.payment, now)
    return True


def stop_waiting(checkout_uuid: UUID, operation_uuid: UUID) -> None:
    """The bank has not heard of an authorization within the payer's minute, or says nothing of it for an hour:
    they may pay again, and what arrives is released."""
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        operation = operations.current(operation_uuid)
        if operation.payment.abandoned_at is None and abandon(checkout, operation, clock.now()):
            rows = Payment.objects.filter(pk=operation.payment_id, decline_reason="")
            rows.update(decline_reason="never_arrived")
            checkout.touch()


def end_challenge(checkout_uuid: UUID, operation_uuid: UUID) -> None:
    """The payer has not confirmed within ten minutes. What has ended meanwhile stays as it is."""
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(checkout_uuid), clock.now()
        operation = operations.current(operation_uuid)
        if operation.kind == Kind.AUTHORIZE and now - operation.created_at > CHALLENGE:
            settlement.end_challenge(checkout, operation, "challenge_expired", now)
