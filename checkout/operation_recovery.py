"""Sends each due card operation again, or looks it up, until its outcome is known.

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
# The provider carries out only one capture and one void of a payment, even if it gets two keys.
KINDS_DONE_ONCE = (Kind.CAPTURE, Kind.VOID)
# After this many attempts, a capture or void is looked up and can get a new key. With the old key, the provider might
# only repeat a stored error.
ATTEMPTS_PER_KEY = 4
REFUSED = (Verdict.FAILED, Verdict.DECLINED)


def finish_operation(operation: Operation, deadline: Deadline | None = None) -> None:
    """Send a claimed operation again or look it up, and record the outcome.

    It is safe to call this again, because the provider recognizes the operation by its id. `deadline` must be created
    before the operation is claimed. After the deadline, no call is sent, because another process might have claimed the
    operation.
    """
    deadline = deadline or Deadline.after(operations.PATIENCE)
    if operation.purpose == Operation.Purpose.OUTSIDE:
        # Others made this refund at the provider. The service never sends it, and reads its result from the provider's
        # books.
        return
    match operation.kind:
        case Kind.AUTHORIZE:
            _finish_authorization(operation, deadline)
        case Kind.CAPTURE:
            _finish_capture(operation, deadline)
        case Kind.VOID:
            _finish_void(operation, deadline)
        case Kind.REFUND:
            _record_outcome(operation, _send_or_look_up(operation, deadline))


def finish_for_payer(subject: UUID) -> None:
    """Finish the open operation of a checkout or share, because the payer has returned from the bank's page."""
    found = open_operations.open_operation(subject)
    with bulkheads.PAYERS.slot() as slot:
        if found is not None and slot.is_taken():
            operation_queue.make_due(found)
            _claim_and_finish(found.pk)


def finish_due_operations(checkout_uuid: UUID) -> None:
    """Finish all due operations of a checkout.

    Each operation is claimed just before it is finished, because a claim is long enough for only one call.
    """
    for operation_uuid in operation_queue.due_operations_of(checkout_uuid):
        _claim_and_finish(operation_uuid)


def _claim_and_finish(operation_uuid: UUID) -> None:
    deadline = Deadline.after(operations.PATIENCE)
    for operation in operation_queue.claim(limit=1, operation_uuid=operation_uuid):
        finish_operation(operation, deadline)


def _lock_arguments(operation: Operation) -> tuple[UUID, UUID, UUID | None]:
    """Return the arguments for a function that locks the checkout: checkout id, operation id and lease."""
    return operation.payment.checkout_uuid, operation.pk, operation.lease_token


def _record_outcome(operation: Operation, outcome: Outcome | None) -> None:
    if outcome is not None:
        checkout_uuid, operation_uuid, lease = _lock_arguments(operation)
        outcomes.record_outcome(checkout_uuid, operation_uuid, outcome, lease=lease)


def _finish_authorization(operation: Operation, deadline: Deadline) -> None:
    """Look up an authorization and record the outcome.

    If the payer has not confirmed the payment at the bank within ten minutes, the authorization is ended. If the bank
    does not answer, the card is given up, and the payer can use another card.
    """
    age, is_waited_for = clock.now() - operation.created_at, operation.payment.abandoned_at is None
    outcome = _ask_authorization(operation, age, deadline)
    checkout_uuid, verdict = operation.payment.checkout_uuid, outcome.verdict
    has_ended = given_up_cards.give_up_if_due(
        checkout_uuid, operation.pk, verdict, age=age, is_waited_for=is_waited_for
    )
    if not has_ended:
        _record_outcome(operation, outcome)


def _ask_authorization(operation: Operation, age: timedelta, deadline: Deadline) -> Outcome:
    """Look up an authorization. If it never arrived and the payer still waits, send it again.

    It is sent under the same id, and only if it was created less than `operation_queue.MAX_PAYER_WAIT` ago. After a
    day, it counts as failed if the provider vouches that it never arrived.
    """
    outcome = operations.look_up(operation, deadline=deadline)
    if outcome.verdict != Verdict.NOT_FOUND:
        return outcome
    if age < operation_queue.MAX_PAYER_WAIT and operation.payment.abandoned_at is None:
        return _send_again(operation, deadline)
    if outcome.is_vouched and age >= operation_queue.IN_DOUBT_TOO_LONG:
        return Outcome(Verdict.FAILED, reason="never_arrived")
    return outcome


def _finish_capture(operation: Operation, deadline: Deadline) -> None:
    """Send a capture again while it is still needed. After that, only look it up.

    A void is sent in two cases: the capture is no longer needed and never arrived, or it is refused although an earlier
    key might still take the money (see `outcomes.needs_fence`). After the void has succeeded, a late capture can no
    longer take the money. Rules doubt.capture_before, doubt.capture_after, doubt.refusal.
    """
    is_refused = False
    if is_capture_wanted(Checkout.objects.get(pk=operation.payment.checkout_uuid), operation):
        outcome = _send_or_look_up(operation, deadline)
        if outcome is None:
            return
        if operations.is_captured_already(outcome):
            outcome = operations.look_up_capture(operation, deadline=deadline)
        is_refused = needs_fence = outcomes.needs_fence(operation, outcome)
    else:
        outcome = operations.look_up_capture(operation, deadline=deadline)
        needs_fence = outcome.verdict == Verdict.NOT_FOUND
    fence = _begin_fence(*_lock_arguments(operation), is_refused=is_refused) if needs_fence else None
    if fence is None:
        _record_outcome(operation, outcome)
    else:
        _finish_void(fence, deadline)


def is_capture_wanted(checkout: Checkout, capture: Operation) -> bool:
    """Return whether the service may still send a capture.

    The capture of an order may be sent until the order's deadline. The capture of a share may be sent while mates may
    still be charged for the order (rules dispute.waits, sync.links).
    """
    if capture.payment.kind == Payment.Kind.ORDER:
        return checkout.status == Status.AUTHORIZED and not checkout.has_lapsed(clock.now())
    return share_outcomes.can_charge_mates(checkout)


def _begin_fence(
    checkout_uuid: UUID, capture_uuid: UUID, lease: UUID | None, *, is_refused: bool = False
) -> Operation | None:
    """Record that a capture failed because it never arrived, and begin a void that makes a late capture impossible.

    Returns the void. Returns None if another process has recorded an outcome in the meantime. Also returns None if the
    provider has accepted the capture, or if the order still needs it and the provider has not refused it.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        now = checkout.locked_at
        operation = operations.read_operation(capture_uuid)
        is_needed = not is_refused and is_capture_wanted(checkout, operation)
        if operation.state == State.PENDING or is_needed:
            return None
        never = Outcome(Verdict.FAILED, reason="never_arrived")
        if not operations.save_outcome(operation, never, now=now, lease=lease):
            return None
        checkout.touch()
        return operations.begin(operation.payment, Kind.VOID, now=now, cause=PUMP)


def _finish_void(operation: Operation, deadline: Deadline) -> None:
    """Send a void again and record the outcome.

    If the provider refuses a fence (see `outcomes.is_fence`), the capture is looked up. The result of this look-up
    decides what is recorded.
    """
    outcome = _send_or_look_up(operation, deadline)
    checkout = Checkout.objects.get(pk=operation.payment.checkout_uuid)
    if outcome is None or outcome.verdict not in REFUSED or not outcomes.is_fence(checkout, operation):
        _record_outcome(operation, outcome)
        return
    captures = operation.payment.operations.filter(kind=Kind.CAPTURE).select_related("payment")
    capture = captures.order_by("-created_at").first()
    look_up = operations.look_up_capture(capture, deadline=deadline) if capture else Outcome(Verdict.UNKNOWN)
    was_captured = operations.is_captured_already(outcome)
    if look_up.verdict == Verdict.SUCCEEDED or (was_captured and look_up.verdict == Verdict.NOT_FOUND):
        _record_outcome(operation, Outcome(Verdict.FAILED, reason="already_captured"))
    elif was_captured:
        # It is unknown who captured the payment: the service or someone else. The look-up does not show this.
        _record_outcome(operation, Outcome(Verdict.UNKNOWN, reason=outcome.reason))
    else:
        is_proven = look_up.verdict in REFUSED or _is_proven_absent(look_up, capture)
        outcomes.renew_fence(checkout.pk, operation.pk, reason=outcome.reason, is_proven=is_proven)


def _is_proven_absent(outcome: Outcome, capture: Operation | None) -> bool:
    """Return whether the capture can no longer arrive, and the provider vouches that it never arrived."""
    if outcome.verdict != Verdict.NOT_FOUND or not outcome.is_vouched or capture is None:
        return False
    ends_at = planning.last_call_ends_at(capture)
    return ends_at is None or ends_at <= clock.now()


def _send_or_look_up(operation: Operation, deadline: Deadline) -> Outcome | None:
    """Send an operation again under its key and return the outcome. If it must not be sent, look it up.

    If the provider vouches that the operation never arrived, it can get a new key. The function then returns None.
    Rule doubt.old_key.
    """
    is_stuck = operation.kind in KINDS_DONE_ONCE and operation.attempts > ATTEMPTS_PER_KEY
    if may_be_sent(operation) and not is_stuck:
        return _send_again(operation, deadline)
    outcome = operations.look_up(operation, deadline=deadline)
    is_absent = outcome.verdict == Verdict.NOT_FOUND and outcome.is_vouched
    if is_absent and may_get_new_key(operation):
        return None if _renew_operation(*_lock_arguments(operation)) else outcome
    if outcome.verdict in (Verdict.NOT_FOUND, Verdict.UNKNOWN) and may_be_sent(operation):
        return _send_again(operation, deadline)
    return outcome


def _send_again(operation: Operation, deadline: Deadline) -> Outcome:
    """Send an operation again and return the outcome. After a refusal, look it up.

    An earlier call might have been carried out, although the provider has forgotten its key. It is also possible that
    someone else has captured or released the payment at the provider. The look-up shows both cases, and then its
    outcome counts instead of the refusal (rule doubt.refusal).
    """
    if operation.kind == Kind.REFUND:
        return _send_refund_again(operation, deadline)
    outcome = operations.perform(operation, deadline=deadline)
    if outcome.verdict not in REFUSED:
        return outcome
    result = operations.look_up(operation, deadline=deadline)
    return outcome if result.verdict in (Verdict.NOT_FOUND, *REFUSED) else result


def _send_refund_again(operation: Operation, deadline: Deadline) -> Outcome:
    """Send a refund and return the outcome. A refund that was sent before is looked up first.

    A refusal without a refund id is about a single call. If the refund was sent more than once, the outcome of the
    other calls is therefore still unknown, and the function returns UNKNOWN. Rules doubt.refund, doubt.refusal.
    """
    if operation.first_sent_at is not None:
        result = operations.look_up(operation, deadline=deadline)
        if result.verdict != Verdict.NOT_FOUND:
            return result
    outcome = operations.perform(operation, deadline=deadline)
    if outcome.verdict not in REFUSED:
        return outcome
    result = operations.look_up(operation, deadline=deadline)
    if result.verdict != Verdict.NOT_FOUND:
        return result
    is_open = planning.was_sent_again(operation) and not outcome.reference
    return Outcome(Verdict.UNKNOWN, reason=outcome.reason) if is_open else outcome


def may_get_new_key(operation: Operation) -> bool:
    """Return whether the service may send an operation that never arrived under a new key.

    With two keys, a refund could be carried out twice. A refund therefore gets a new key only when the provider can no
    longer carry out a call under the old key.
    """
    return operation.kind in KINDS_DONE_ONCE or planning.calls_have_ended(operation, clock.now())


def may_be_sent(operation: Operation) -> bool:
    """Return whether the service may send an operation under its current key.

    It may be sent if the provider has not accepted it yet and still remembers the key.
    """
    first = operation.first_sent_at
    is_fresh = first is None or clock.now() - first < planning.longest_key_use()
    return is_fresh and operation.state != State.PENDING


def _renew_operation(checkout_uuid: UUID, operation_uuid: UUID, lease: UUID | None) -> bool:
    """Replace an operation by one with a new key; return whether it was replaced.

    It is not replaced if it has ended, if another process has claimed it, or if it is a capture that is no longer
    needed.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        operation = operations.read_operation(operation_uuid)
        if operation.ended_at is not None or operation.lease_token != lease:
            return False
        if operation.kind == Kind.CAPTURE and not is_capture_wanted(checkout, operation):
            return False
        renew_and_settle(checkout, operation, clock.now())
    return True


def renew_and_settle(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Replace an operation that never arrived by an operation with a new key.

    If it is a refund, `settle` plans a new refund of the amount that the card is still owed. Must be called with the
    checkout locked.
    """
    planning.replace_under_new_key(operation, now=now)
    if operation.kind == Kind.REFUND:
        settling.settle(checkout, now)
