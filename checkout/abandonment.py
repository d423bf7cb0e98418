"""Giving up a card: the bank is silent, the payer has not confirmed, or goes on with another card.

Whatever the card may hold is released once it is found.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import shares
from checkout.models import Checkout
from config.lib import clock
from payments import due, open_operations, operations
from payments.models import Operation, Payment
from payments.provider import Outcome, Verdict

CHALLENGE = timedelta(minutes=10)
Kind, State = Operation.Kind, Operation.State


def may_use_another_card(operation: Operation, now: datetime) -> bool:
    """Whether the payer need not wait any longer for this authorization."""
    return operation.state == State.NEEDS_ACTION or now - operation.created_at >= due.PATIENT_FOR


def use_another_card(checkout_uuid: UUID, subject: UUID | None = None) -> None:
    """Let the card go that the bank is silent about, or asks about, if that is due; of a share, if that is named."""
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        found = open_operations.open_operation(subject or checkout_uuid)
        if found is not None and found.kind == Kind.AUTHORIZE and make_way(checkout, found, clock.now()):
            checkout.touch()


def make_way(checkout: Checkout, operation: Operation, now: datetime) -> bool:
    """Let a card go in whose stead another one comes, if that is due; whatever it may hold is released.

    Belongs under the checkout's lock, with both read there.
    """
    if operation.state == State.NEEDS_ACTION:
        _end_challenge(checkout, operation, "another_card", now)
        return True
    return abandon_if_silent(checkout, operation, now)


def abandon_if_silent(checkout: Checkout, operation: Operation, now: datetime) -> bool:
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
    if operation.payment.kind == Payment.Kind.SHARE:
        shares.free_of(checkout, operation.payment, now)
    return True


def stop_waiting(checkout_uuid: UUID, operation_uuid: UUID) -> None:
    """The bank has not heard of an authorization within the payer's minute, or says nothing of it for an hour:
    they may pay again, and what arrives is released."""
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        operation = operations.current(operation_uuid)
        if operation.payment.abandoned_at is None and abandon_if_silent(checkout, operation, clock.now()):
            rows = Payment.objects.filter(pk=operation.payment_id, decline_reason="")
            rows.update(decline_reason="never_arrived")
            checkout.touch()


def end_challenge(checkout_uuid: UUID, operation_uuid: UUID) -> None:
    """The payer has not confirmed within ten minutes. What has ended meanwhile stays as it is."""
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(checkout_uuid), clock.now()
        operation = operations.current(operation_uuid)
        if operation.kind == Kind.AUTHORIZE and now - operation.created_at > CHALLENGE:
            _end_challenge(checkout, operation, "challenge_expired", now)


def _end_challenge(checkout: Checkout, operation: Operation, reason: str, now: datetime) -> None:
    """End an authorization that the payer has not confirmed; should they do so yet, the hold is released.

    Belongs under the checkout's lock, with both read there. Rule pay.challenge.
    """
    if operations.record(operation, Outcome(Verdict.FAILED, reason=reason), now=now, lease=None):
        shares.release(operation.payment, now)
        if operation.payment.kind == Payment.Kind.SHARE:
            shares.free_of(checkout, operation.payment, now)
