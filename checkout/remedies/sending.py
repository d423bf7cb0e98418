"""The remedy that sends a refund or void again which failed or never arrived."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from checkout import doubt, outcomes, share_outcomes
from checkout.models import Checkout
from checkout.remedies import asking, parts
from checkout.remedies.asking import NotAllowed
from config.lib import clock, wakeup
from payments import operations, planning
from payments.cause import Cause
from payments.models import Operation, Payment

Kind, State = Operation.Kind, Operation.State
RELEASED = (Payment.Status.CAPTURED, Payment.Status.VOIDED, Payment.Status.REFUNDED)


def send_again(operation_uuid: UUID, *, cause: Cause) -> UUID:
    """Make a refund or a void due again at once, if the provider, asked first, says that it failed or does not exist.

    One that has ended gets a new key. One in doubt keeps its key for as long as the provider remembers it, so that a
    call still on its way does no harm, and gets a new one after that. Returns the checkout's uuid. Raises NotAllowed.
    """
    asked = operations.current(operation_uuid)
    _check(asked)
    outcome = asking.look_up(asked)
    if outcome.verdict not in asking.REFUSED and not asking.vouches(outcome):
        raise NotAllowed(
            f"{asking.words(outcome)} It is sent again only when it failed, or does not exist there."
        )
    checkout_uuid = asked.payment.checkout_uuid
    if asked.ended_at is None and outcome.verdict in asking.REFUSED:
        outcomes.record_outcome(checkout_uuid, asked.pk, outcome, lease=asked.lease_token)
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        operation, now = operations.current(operation_uuid), clock.now()
        _check(operation)
        _check_wanted(checkout, operation)
        if operation.ended_at is None:
            _advance(operation, asked, now)
        else:
            _send_anew(operation, cause, now)
            checkout.touch()
        wakeup.after_commit(share_outcomes.FINISH_OPERATIONS)
    return checkout_uuid


def _check(operation: Operation) -> None:
    if operation.kind not in (Kind.REFUND, Kind.VOID):
        raise NotAllowed("Only a refund or a void is sent again.")
    if operation.state == State.SUCCEEDED and operation.returned_as is None:
        raise NotAllowed("It has succeeded.")
    if operation.state == State.PLANNED:
        raise NotAllowed("It has not been sent yet, and will be by itself.")


def _check_wanted(checkout: Checkout, operation: Operation) -> None:
    if operation.kind == Kind.REFUND:
        parts.check_wanted(checkout, operation)
    elif operation.payment.status in RELEASED:
        raise NotAllowed(f"Nothing is held any more: the payment is {operation.payment.status}.")
    elif outcomes.is_fence(checkout, operation) and operation.ended_at is not None:
        raise NotAllowed("The order still waits for what is held.")


def _advance(operation: Operation, asked: Operation, now: datetime) -> None:
    """Make an operation that never arrived due now, under its own key if that may still be sent, else a new one."""
    if operation.lease_token != asked.lease_token or operation.attempts != asked.attempts:
        raise NotAllowed(parts.UNDER_WAY)
    if doubt.may_be_sent(operation):
        Operation.objects.filter(pk=operation.pk).update(next_attempt_at=now)
    elif doubt.may_be_renewed(operation):
        planning.renew(operation, now=now)
    else:
        raise NotAllowed(
            "A call was not answered and may still arrive: a second one could give it back twice."
        )


def _send_anew(operation: Operation, cause: Cause, now: datetime) -> None:
    """Plan the operation under a new key; if another attempt is planned already, make that one due now."""
    rows = planning.parts_like(operation)
    if operation.kind == Kind.VOID:
        rows = operation.payment.operations.filter(kind=Kind.VOID)
    open_rows = rows.filter(ended_at=None)
    if open_rows.exclude(state=State.PLANNED).exists():
        raise NotAllowed(parts.UNDER_WAY)
    if not open_rows.update(next_attempt_at=now, created_at=now):
        planning.plan_again(operation, at=now, cause=cause)
