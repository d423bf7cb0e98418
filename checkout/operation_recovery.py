"""Operations that are due, also those in doubt: each is sent again or looked up until it has ended.

Rules doubt.unknown, doubt.crash, doubt.authorize.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import given_up_cards, outcomes, settling, share_outcomes
from checkout.models import Checkout
from checkout.states import Status
from config.lib import clock
from config.lib.deadline import Deadline
from payments import bulkheads, open_operations, operation_queue, operations, planning
from payments.cause import PUMP
from payments.models import Operation, Payment
from payments.provider import Outcome, Verdict

Kind, State = Operation.Kind, Operation.State
ONCE = (Kind.CAPTURE, Kind.VOID)  # a payment is captured or released only once, even under two keys
# Of a capture or void. The provider might repeat a stored error for as long as it remembers the key.
ATTEMPTS_PER_KEY = 4
REFUSED = (Verdict.FAILED, Verdict.DECLINED)


def finish(operation: Operation, deadline: Deadline | None = None) -> None:
    """Send a claimed operation again or look it up, and record the outcome.

    It is safe to repeat, because the provider knows the operation's id. `deadline` was set before the claim.
    A process that slept past it sends no call, because another process can have taken over.
    """
    deadline = deadline or Deadline.after(operations.PATIENCE)
    if operation.purpose == Operation.Purpose.OUTSIDE:
        return  # made by others: its result is in the provider's books, and it is never sent
    match operation.kind:
        case Kind.AUTHORIZE:
            _finish_authorization(operation, deadline)
        case Kind.CAPTURE:
            _finish_capture(operation, deadline)
        case Kind.VOID:
            _finish_void(operation, deadline)
        case Kind.REFUND:
            _record_outcome(operation, _sent_again(operation, deadline))


def finish_now(subject: UUID) -> None:
    """Finish the open operation of a checkout or share now, because the payer is back from their bank."""
    found = open_operations.open_operation(subject)
    with bulkheads.PAYERS.slot() as slot:
        if found is not None and slot.is_taken():
            operation_queue.make_due(found)
            _finish_one(found.pk)


def finish_all_of(checkout_uuid: UUID) -> None:
    """Finish the due operations of a checkout now.

    Each one is claimed just before it is finished, because a lease lasts for one call only.
    """
    for operation_uuid in operation_queue.due_operations_of(checkout_uuid):
        _finish_one(operation_uuid)


def _finish_one(operation_uuid: UUID) -> None:
    deadline = Deadline.after(operations.PATIENCE)
    for operation in operation_queue.claim(limit=1, operation_uuid=operation_uuid):
        finish(operation, deadline)


def _lock_arguments(operation: Operation) -> tuple[UUID, UUID, UUID | None]:
    """Return the ids of checkout and operation, and the lease, for a function that locks the checkout."""
    return operation.payment.checkout_uuid, operation.pk, operation.lease_token


def _record_outcome(operation: Operation, outcome: Outcome | None) -> None:
    if outcome is not None:
        checkout_uuid, operation_uuid, lease = _lock_arguments(operation)
        outcomes.record_outcome(checkout_uuid, operation_uuid, outcome, lease=lease)


def _finish_authorization(operation: Operation, deadline: Deadline) -> None:
    """Look up an authorization and record the outcome.

    A challenge ends after ten minutes. If the bank does not answer, the payer no longer has to wait for it.
    """
    age, is_waited_for = clock.now() - operation.created_at, operation.payment.abandoned_at is None
    outcome = _ask_authorization(operation, age, deadline)
    checkout_uuid, said = operation.payment.checkout_uuid, outcome.verdict
    has_ended = given_up_cards.give_up_if_due(
        checkout_uuid, operation.pk, said, age=age, is_waited_for=is_waited_for
    )
    if not has_ended:
        _record_outcome(operation, outcome)


def _ask_authorization(operation: Operation, age: timedelta, deadline: Deadline) -> Outcome:
    """Look up an authorization. If it never arrived and the payer still waits, send it again.

    It is sent under the same id. Later it is not sent. After a day it counts as failed, if the provider
    vouches that it never arrived.
    """
    outcome = operations.look_up(operation, deadline=deadline)
    if outcome.verdict != Verdict.NOT_FOUND:
        return outcome
    if age < operation_queue.PATIENT_FOR and operation.payment.abandoned_at is None:
        return _performed_again(operation, deadline)
    if outcome.is_vouched and age >= operation_queue.IN_DOUBT_TOO_LONG:
        return Outcome(Verdict.FAILED, reason="never_arrived")
    return outcome


def _finish_capture(operation: Operation, deadline: Deadline) -> None:
    """Send a capture again while it is wanted. Later look it up, and fence it by a void if it never arrived.

    Rules doubt.capture_before, doubt.capture_after.
    """
    if is_wanted(Checkout.objects.get(pk=operation.payment.checkout_uuid), operation):
        outcome = _sent_again(operation, deadline)
        if outcome is not None and operations.is_captured_already(outcome):
            outcome = operations.look_up_capture(operation, deadline=deadline)
        _record_outcome(operation, outcome)
        return
    outcome = operations.look_up_capture(operation, deadline=deadline)
    fence = _begin_fence(*_lock_arguments(operation)) if outcome.verdict == Verdict.NOT_FOUND else None
    if fence is None:
        _record_outcome(operation, outcome)
    else:
        _finish_void(fence, deadline)


def is_wanted(checkout: Checkout, capture: Operation) -> bool:
    """Return whether the service may still send a capture.

    It may send an order's capture until its deadline, and a share's capture while the order's shares can be
    charged (rules dispute.waits, sync.links).
    """
    if capture.payment.kind == Payment.Kind.ORDER:
        return checkout.status == Status.AUTHORIZED and not checkout.has_lapsed(clock.now())
    return share_outcomes.takes_shares(checkout)


def _begin_fence(checkout_uuid: UUID, capture_uuid: UUID, lease: UUID | None) -> Operation | None:
    """Record a capture that never arrived as failed, and begin the void that proves it.

    Returns None if another process has settled the capture since, if the provider has accepted it, or if it
    is wanted.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        now = checkout.locked_at
        operation = operations.read_operation(capture_uuid)
        if operation.state == State.PENDING or is_wanted(checkout, operation):
            return None
        never = Outcome(Verdict.FAILED, reason="never_arrived")
        if not operations.record(operation, never, now=now, lease=lease):
            return None
        checkout.touch()
        return operations.begin(operation.payment, Kind.VOID, now=now, cause=PUMP)


def _finish_void(operation: Operation, deadline: Deadline) -> None:
    """Send a void again. If a fence is refused, the outcome of the capture decides."""
    outcome = _sent_again(operation, deadline)
    checkout = Checkout.objects.get(pk=operation.payment.checkout_uuid)
    if outcome is None or outcome.verdict not in REFUSED or not outcomes.is_fence(checkout, operation):
        _record_outcome(operation, outcome)
        return
    captures = operation.payment.operations.filter(kind=Kind.CAPTURE).select_related("payment")
    capture = captures.order_by("-created_at").first()
    seen = operations.look_up_capture(capture, deadline=deadline) if capture else Outcome(Verdict.UNKNOWN)
    was_captured = operations.is_captured_already(outcome)
    if seen.verdict == Verdict.SUCCEEDED or (was_captured and seen.verdict == Verdict.NOT_FOUND):
        _record_outcome(operation, Outcome(Verdict.FAILED, reason="already_captured"))
    elif was_captured:  # but it is unknown whether our amount was captured
        _record_outcome(operation, Outcome(Verdict.UNKNOWN, reason=outcome.reason))
    else:
        is_proven = seen.verdict in REFUSED or _is_vouched(seen, capture)
        outcomes.renew_fence(checkout.pk, operation.pk, reason=outcome.reason, is_proven=is_proven)


def _is_vouched(seen: Outcome, capture: Operation | None) -> bool:
    """Return whether the provider vouches that no capture arrived, and none can be carried out any more."""
    is_absent = seen.verdict == Verdict.NOT_FOUND and seen.is_vouched
    return is_absent and capture is not None and planning.calls_have_ended(capture, clock.now())


def _sent_again(operation: Operation, deadline: Deadline) -> Outcome | None:
    """Send an operation again under its key, or look it up if it must not be sent; return the outcome.

    Returns None if the operation was renewed under a new key, because the provider vouches that it never
    arrived. Rule doubt.old_key.
    """
    is_stuck = operation.kind in ONCE and operation.attempts > ATTEMPTS_PER_KEY
    if may_be_sent(operation) and not is_stuck:
        return _performed_again(operation, deadline)
    outcome = operations.look_up(operation, deadline=deadline)
    is_absent = outcome.verdict == Verdict.NOT_FOUND and outcome.is_vouched
    if is_absent and may_be_renewed(operation):
        return None if _renew_operation(*_lock_arguments(operation)) else outcome
    if outcome.verdict in (Verdict.NOT_FOUND, Verdict.UNKNOWN) and may_be_sent(operation):
        return _performed_again(operation, deadline)
    return outcome


def _performed_again(operation: Operation, deadline: Deadline) -> Outcome:
    """Send an operation again and return the outcome. After a refusal, look it up.

    An earlier call can have been carried out, even if the provider has forgotten its key. Someone else can
    also have acted at the provider. The look-up shows both, and its outcome then counts (rule doubt.refusal).
    """
    if operation.kind == Kind.REFUND:
        return _refunded_again(operation, deadline)
    outcome = operations.perform(operation, deadline=deadline)
    if outcome.verdict not in REFUSED:
        return outcome
    seen = operations.look_up(operation, deadline=deadline)
    return outcome if seen.verdict in (Verdict.NOT_FOUND, *REFUSED) else seen


def _refunded_again(operation: Operation, deadline: Deadline) -> Outcome:
    """Send a refund and return the outcome. A refund that was sent before is looked up first.

    A refusal that names no refund answers one sending only. If there was another sending, the refusal counts
    as silence. Rules doubt.refund, doubt.refusal.
    """
    if operation.first_sent_at is not None:
        seen = operations.look_up(operation, deadline=deadline)
        if seen.verdict != Verdict.NOT_FOUND:
            return seen
    outcome = operations.perform(operation, deadline=deadline)
    if outcome.verdict not in REFUSED:
        return outcome
    seen = operations.look_up(operation, deadline=deadline)
    if seen.verdict != Verdict.NOT_FOUND:
        return seen
    is_open = planning.was_sent_again(operation) and not outcome.reference
    return Outcome(Verdict.UNKNOWN, reason=outcome.reason) if is_open else outcome


def may_be_renewed(operation: Operation) -> bool:
    """Return whether the service may send an operation that never arrived under a new key.

    A refund could be carried out under both keys. Therefore it waits until no call under the old key can be
    carried out.
    """
    return operation.kind in ONCE or planning.calls_have_ended(operation, clock.now())


def may_be_sent(operation: Operation) -> bool:
    """Return whether the service may send an operation under its key.

    The provider must not have accepted it yet, and must still know the key.
    """
    first = operation.first_sent_at
    is_fresh = first is None or clock.now() - first < planning.longest_key_use()
    return is_fresh and operation.state != State.PENDING


def _renew_operation(checkout_uuid: UUID, operation_uuid: UUID, lease: UUID | None) -> bool:
    """Renew an operation under a new key; return whether it was renewed.

    It is not renewed if another process has taken it over, or if it is no longer wanted.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        operation = operations.read_operation(operation_uuid)
        if operation.ended_at is not None or operation.lease_token != lease:
            return False
        if operation.kind == Kind.CAPTURE and not is_wanted(checkout, operation):
            return False
        renew(checkout, operation, clock.now())
    return True


def renew(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Renew an operation that never arrived under a new key.

    For a refund, `settle` plans what the card is still owed. Must be called with the checkout locked.
    """
    planning.renew(operation, now=now)
    if operation.kind == Kind.REFUND:
        settling.settle(checkout, now)
