"""Remedy that sends a refund or a void again after it failed or never arrived."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import operation_recovery, outcomes, settling
from checkout.models import Checkout
from checkout.remedies import outstanding_refund, status_check
from checkout.remedies.outstanding_refund import AmountDue
from checkout.remedies.status_check import NotAllowed
from config.lib import clock, wakeup
from payments import operations, planning
from payments.cause import Cause
from payments.models import Operation, Payment
from payments.planning import OperationDetails

Kind, State = Operation.Kind, Operation.State
RELEASED_STATUSES = (Payment.Status.CAPTURED, Payment.Status.VOIDED, Payment.Status.REFUNDED)


def send_again(operation_uuid: UUID, *, cause: Cause) -> UUID:
    """Plan a refund or a void again, due now, if the provider reports that it failed or never arrived.

    An operation that the provider refused gets a new key. An operation that never arrived keeps its key while the
    provider remembers the key. A refund that never arrived gets a new key only when the provider can no longer carry
    out a call under the old key. Returns the checkout's uuid. Raises NotAllowed. Rule doubt.old_key.
    """
    queried = operations.read_operation(operation_uuid)
    _check_allowed(queried)
    is_refused, checkout_uuid = _is_refused_at_provider(queried), queried.payment.checkout_uuid
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        operation, now = operations.read_operation(operation_uuid), clock.now()
        _check_allowed(operation)
        if operation.ended_at is None:
            _make_due(checkout, operation, queried, now)
        elif operation.kind == Kind.REFUND:
            if not is_refused:
                _check_new_key(operation)
            _plan_refund(outstanding_refund.find_amount_due(checkout, operation, now), cause, now)
            checkout.touch()
        else:
            _plan_void(checkout, operation, cause, now)
            checkout.touch()
        wakeup.wake_after_commit(settling.FINISH_OPERATIONS)
    return checkout_uuid


def _is_refused_at_provider(queried: Operation) -> bool:
    """Ask the provider about the operation; return whether the provider refused it.

    If the operation has not ended, its refusal is recorded. Returns False if the provider vouches that the operation
    never arrived. Raises NotAllowed for any other answer.
    """
    status_check.sync(queried.payment_id)
    outcome = status_check.look_up(queried)
    is_refused = outcome.verdict in status_check.REFUSED
    if not is_refused and not status_check.is_vouched_absent(outcome):
        raise NotAllowed(
            f"{status_check.describe_answer(outcome)} It is sent again only if it failed or never arrived."
        )
    if is_refused and queried.ended_at is None:
        outcomes.record_outcome(queried.payment.checkout_uuid, queried.pk, outcome, lease=queried.lease_token)
    return is_refused


def _check_allowed(operation: Operation) -> None:
    if operation.kind not in (Kind.REFUND, Kind.VOID):
        raise NotAllowed("Only a refund or a void is sent again.")
    if operation.state == State.SUCCEEDED and not outstanding_refund.was_returned(operation):
        raise NotAllowed("The operation has succeeded.")
    if operation.state == State.PLANNED:
        raise NotAllowed("The operation has not been sent yet. The service sends it automatically.")


def _plan_refund(due: AmountDue, cause: Cause, now: datetime) -> None:
    """Plan an immediate refund of the amount owed, and withdraw the attempts that were planned for later."""
    due.withdraw_planned(now)
    details = OperationDetails(
        due.amount,
        due.key.refund_uuid,
        due.key.share_uuid,
        at=now,
        resends=due.resends.pk if due.resends else None,
    )
    planning.plan_operations([due.key.payment_uuid], Kind.REFUND, now=now, cause=cause, details=details)


def _plan_void(checkout: Checkout, void: Operation, cause: Cause, now: datetime) -> None:
    """Plan a refused void again, due now. If a void is already planned, make it due now."""
    if void.payment.status in RELEASED_STATUSES:
        raise NotAllowed(f"Nothing is held any more: the payment is {void.payment.status}.")
    if outcomes.is_fence(checkout, void):
        raise NotAllowed("The order still waits for what is held.")
    open_rows = void.payment.operations.filter(kind=Kind.VOID, ended_at=None)
    if open_rows.exclude(state=State.PLANNED).exists():
        raise NotAllowed(outstanding_refund.UNDER_WAY)
    if not open_rows.update(next_attempt_at=now, created_at=now):
        planning.plan_void_again(void, at=now, cause=cause)


def _make_due(checkout: Checkout, operation: Operation, queried: Operation, now: datetime) -> None:
    """Make an operation that never arrived due now.

    The operation keeps its key if it can still be sent under this key. Otherwise, it gets a new key. Raises NotAllowed
    if the operation was sent in the meantime, if a new key could cause a second refund, or if a refund of a disputed
    order would get a new key.
    """
    if operation.lease_token != queried.lease_token or operation.attempts != queried.attempts:
        raise NotAllowed(outstanding_refund.UNDER_WAY)
    if operation_recovery.may_be_sent(operation):
        Operation.objects.filter(pk=operation.pk).update(next_attempt_at=now)
    else:
        _check_new_key(operation)
        if operation.kind == Kind.REFUND:
            outstanding_refund.check_not_disputed(checkout)
        operation_recovery.renew_and_settle(checkout, operation, now)


def _check_new_key(operation: Operation) -> None:
    """Raise NotAllowed if a call under a new key could refund the money twice.

    A second refund is possible while the provider could still carry out a call under the current key.
    """
    ended_at = planning.calls_end_at(operation)
    if ended_at is not None and not operation_recovery.may_get_new_key(operation):
        at = ended_at.astimezone(UTC) + timedelta(minutes=1)
        raise NotAllowed(
            "A call that was sent before could still be carried out, and the money would go back twice. Send it again"
            f" after {at:%d %B %Y, %H:%M} UTC, if the provider then still says that it never arrived."
        )
