"""Gives up an authorization, so that the payer can use another card.

There are three reasons: the bank does not answer, the payer does not confirm the payment in time, or the payer chooses
another card. If the bank holds the money later, the hold is released. Rules pay.another_card, pay.challenge.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import share_outcomes
from checkout.models import Checkout
from config.lib import clock
from payments import open_operations, operation_queue, operations
from payments.models import Operation, Payment
from payments.provider import Outcome, Verdict

CHALLENGE = timedelta(minutes=10)  # time that the payer has to confirm the payment at the bank
GIVEN_UP_AFTER = timedelta(hours=1)  # time that the provider has to give a clear outcome of an authorization
Kind, State = Operation.Kind, Operation.State


def is_another_card_allowed(operation: Operation, now: datetime) -> bool:
    """Return whether the payer may use another card instead of waiting for this authorization."""
    return (
        operation.state == State.NEEDS_ACTION or now - operation.created_at >= operation_queue.MAX_PAYER_WAIT
    )


def allow_another_card(checkout_uuid: UUID, subject: UUID | None = None, *, lead: UUID | None = None) -> None:
    """Give up the open authorization of a checkout or a share, if the payer may use another card.

    `subject` is the id of the share, or None for the checkout. `lead` is the id of the person who makes the
    request, if that person is known. If another person leads the checkout now, no card is given up. Rule
    pay.lead.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        if lead is not None and subject in (None, checkout_uuid) and checkout.is_led_by_another(lead):
            return
        found = open_operations.open_operation(subject or checkout_uuid)
        if found is None or found.kind != Kind.AUTHORIZE:
            return
        if give_up_for_another_card(checkout, found, clock.now()):
            checkout.touch()


def give_up_for_another_card(checkout: Checkout, operation: Operation, now: datetime) -> bool:
    """Give up an authorization so that another card can be used; return whether it was given up.

    If the authorization waits for the payer's confirmation, it is given up at once. Otherwise, the conditions
    of `abandon_if_silent` apply. The checkout must be locked, and `operation` must be read under the lock.
    """
    if operation.state == State.NEEDS_ACTION:
        _end_challenge(checkout, operation, "another_card", now)
        return True
    return abandon_if_silent(checkout, operation, now)


def abandon_if_silent(checkout: Checkout, operation: Operation, now: datetime) -> bool:
    """Give up an authorization that has waited too long; return whether it was given up.

    The bank has one minute to answer, and the payer has ten minutes to confirm. If a hold is found later, it is
    released. The checkout must be locked, and `operation` must be read under the lock. Rule pay.another_card.
    """
    if operation.kind != Kind.AUTHORIZE or operation.ended_at is not None:
        return False
    age = now - operation.created_at
    if age < (CHALLENGE if operation.state == State.NEEDS_ACTION else operation_queue.MAX_PAYER_WAIT):
        return False
    open_operations.abandon_payment(operation.payment, now)
    if operation.payment.kind == Payment.Kind.SHARE:
        share_outcomes.reopen_share_of(checkout, operation.payment, now)
    return True


def give_up_if_due(
    checkout_uuid: UUID, operation_uuid: UUID, verdict: Verdict, *, age: timedelta, is_waited_for: bool
) -> bool:
    """Give up an authorization that has passed its time limit; return whether its operation was ended.

    If the payer has not confirmed the payment in time, the operation is ended. If the bank has not answered,
    the payer can use another card, but the operation stays open and the service keeps looking it up. `verdict`
    is the provider's latest verdict, and `age` is the age of the authorization. `is_waited_for` is false if the
    authorization has already been given up. Rules pay.challenge, pay.another_card.
    """
    if verdict == Verdict.NEEDS_ACTION and age > CHALLENGE:
        _expire_challenge(checkout_uuid, operation_uuid)
        return True
    is_silent = verdict in (Verdict.UNKNOWN, Verdict.PENDING) and age >= GIVEN_UP_AFTER
    if is_waited_for and (
        is_silent or (verdict == Verdict.NOT_FOUND and age >= operation_queue.MAX_PAYER_WAIT)
    ):
        _stop_waiting(checkout_uuid, operation_uuid)
    return False


def _stop_waiting(checkout_uuid: UUID, operation_uuid: UUID) -> None:
    """Give up an authorization so that the payer can pay again. The operation stays open.

    If a hold is found later, it is released.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        operation = operations.read_operation(operation_uuid)
        if operation.payment.abandoned_at is None and abandon_if_silent(checkout, operation, clock.now()):
            rows = Payment.objects.filter(pk=operation.payment_id, decline_reason="")
            rows.update(decline_reason="never_arrived")
            checkout.touch()


def _expire_challenge(checkout_uuid: UUID, operation_uuid: UUID) -> None:
    """End an authorization that the payer has not confirmed within ten minutes.

    An authorization that has already ended is not changed.
    """
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(checkout_uuid), clock.now()
        operation = operations.read_operation(operation_uuid)
        is_late = operation.kind == Kind.AUTHORIZE and now - operation.created_at > CHALLENGE
        if is_late and _end_challenge(checkout, operation, "challenge_expired", now):
            checkout.touch()


def _end_challenge(checkout: Checkout, operation: Operation, reason: str, now: datetime) -> bool:
    """End an authorization that the payer has not confirmed. Return False if it had already ended.

    If the payer confirms it later, the hold is released. The checkout must be locked, and `operation` must be
    read under the lock. Rule pay.challenge.
    """
    if not operations.save_outcome(operation, Outcome(Verdict.FAILED, reason=reason), now=now, lease=None):
        return False
    share_outcomes.release_payment(operation.payment, now)
    if operation.payment.kind == Payment.Kind.SHARE:
        share_outcomes.reopen_share_of(checkout, operation.payment, now)
    return True
