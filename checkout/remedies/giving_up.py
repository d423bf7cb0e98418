"""Remedy that gives up an authorization or a capture whose outcome is unknown.

The order then continues as if the operation had never been sent.
"""

from datetime import UTC, timedelta
from uuid import UUID

from django.db import transaction

from checkout import expiry, given_up_cards, operation_recovery, outcomes
from checkout.models import Checkout
from checkout.remedies import outstanding_refund, status_check
from checkout.remedies.status_check import NotAllowed
from config.lib import clock
from config.lib.deadline import Deadline
from payments import operation_queue, operations, planning
from payments.cause import Cause
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Operation
from payments.provider import Outcome, Verdict

Kind, State = Operation.Kind, Operation.State
GIVEN_UP = "given_up_by_operator"
# After this time, no call for an authorization is running. The last call begins at most MAX_PAYER_WAIT after the
# authorization was created, and takes only seconds.
CALLS_END_AFTER = operation_queue.MAX_PAYER_WAIT + timedelta(minutes=1)


def give_up(operation_uuid: UUID, *, note: str, cause: Cause) -> UUID:
    """End an authorization or a capture whose outcome is unknown. It then counts as failed.

    This is allowed if the provider vouches that the operation never arrived. A capture must also be so old that no call
    for it can arrive any more. There are two exceptions: a capture can be given up if someone else has captured another
    amount, and an authorization can be given up if the service sends a void of it and the void succeeds. Returns the
    checkout's uuid. Raises NotAllowed.
    """
    queried = operations.read_operation(operation_uuid)
    _check_in_doubt(queried)
    status_check.sync(queried.payment_id)
    _check_capture(queried)
    outcome = status_check.look_up(queried)
    has_failed = status_check.is_vouched_absent(outcome) or _is_another_amount_captured(queried)
    void = None if has_failed else _release_hold(queried, outcome, cause)
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(queried.payment.checkout_uuid)
        operation, now = operations.read_operation(operation_uuid), clock.now()
        _check_in_doubt(operation)
        _check_capture(operation)
        outcomes.conclude_operation(checkout, operation, Outcome(Verdict.FAILED, reason=GIVEN_UP), now=now)
        if void is not None:
            outcomes.conclude_operation(
                checkout, operations.read_operation(void.pk), Outcome(Verdict.SUCCEEDED), now=now
            )
        expiry.expire_if_due(checkout, now)
        checkout.touch()
        reporting.close_resolved(kinds.IN_DOUBT_FOR_A_DAY, operation.pk, note=note, now=now)
        reporting.close_resolved(kinds.CAPTURE_PENDING_TOO_LONG, operation.pk, note=note, now=now)
    return checkout.pk


def _check_in_doubt(operation: Operation) -> None:
    if operation.kind not in (Kind.AUTHORIZE, Kind.CAPTURE):
        raise NotAllowed("Only an authorization or a capture is given up. A refund or a void is sent again.")
    if not operation_queue.is_in_doubt(operation):
        raise NotAllowed("The operation is not in doubt.")
    if operation_queue.is_leased(operation, clock.now()):
        raise NotAllowed(outstanding_refund.UNDER_WAY)
    if operation.kind == Kind.AUTHORIZE and clock.now() - operation.created_at < CALLS_END_AFTER:
        raise NotAllowed("The payer still waits for their bank. Look again in two minutes.")


def _is_another_amount_captured(operation: Operation) -> bool:
    """Return whether the operation is a capture, and the provider's books show a capture of another amount.

    A payment is captured at most once, so the operation can then never succeed.
    """
    reports = Discrepancy.objects.filter(kind=kinds.CAPTURED_ANOTHER_AMOUNT.name, closed_at=None)
    return operation.kind == Kind.CAPTURE and reports.filter(subject=operation.payment_id).exists()


def _check_capture(operation: Operation) -> None:
    """Raise NotAllowed if the operation is a capture that the order still needs, or that could still take the money."""
    if operation.kind != Kind.CAPTURE or _is_another_amount_captured(operation):
        return
    checkout = Checkout.objects.get(pk=operation.payment.checkout_uuid)
    if operation_recovery.is_capture_wanted(checkout, operation):
        raise NotAllowed("The order still needs this capture. The service sends it automatically.")
    ends_at = planning.last_call_ends_at(operation)
    if ends_at is not None and ends_at > clock.now():
        at = ends_at.astimezone(UTC) + timedelta(minutes=1)
        raise NotAllowed(
            "A call that was sent before could still take the money. The service looks the capture up, and releases the"
            f" hold automatically. Give it up after {at:%d %B %Y, %H:%M} UTC, if it is then still in doubt."
        )


def _release_hold(queried: Operation, outcome: Outcome, cause: Cause) -> Operation:
    """Send a void of the hold that an authorization might have made, and return the void.

    Raises NotAllowed if the void does not succeed.
    """
    refusal = NotAllowed(
        f"{status_check.describe_answer(outcome)} The operation can be given up only if a void succeeds, or "
        "if the provider vouches that the operation never arrived."
    )
    if queried.kind != Kind.AUTHORIZE or outcome.verdict not in (Verdict.UNKNOWN, Verdict.NOT_FOUND):
        raise refusal
    void = _plan_void(queried.payment.checkout_uuid, queried.pk, cause)
    if operations.perform(void, deadline=Deadline.after(operations.PATIENCE)).verdict != Verdict.SUCCEEDED:
        raise refusal
    return void


def _plan_void(checkout_uuid: UUID, operation_uuid: UUID, cause: Cause) -> Operation:
    """Plan a void of an authorization with an unknown outcome, and give up its card.

    Returns the planned void. If the provider refuses the void now, the void stays planned, and the pump sends it again
    later. Raises NotAllowed.
    """
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(checkout_uuid), clock.now()
        operation = operations.read_operation(operation_uuid)
        if not given_up_cards.abandon_if_silent(checkout, operation, now):
            raise NotAllowed("The operation is not in doubt.")
        checkout.touch()
        voids = operation.payment.operations.filter(kind=Kind.VOID, state=State.PLANNED)
        if not voids.exists():
            planning.plan_operations([operation.payment_id], Kind.VOID, now=now, cause=cause)
        return voids.select_related("payment").latest("created_at")
