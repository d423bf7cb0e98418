"""Finishing what was begun: each operation whose time has come is brought to its end.

Rules doubt.unknown, doubt.crash.
"""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from django.db import transaction

from checkout import abandonment, outcomes
from checkout.abandonment import CHALLENGE
from checkout.models import Checkout
from checkout.states import Status
from config.lib import clock
from config.lib.deadline import Deadline
from payments import bulkheads, due, open_operations, operations, planning, provider
from payments.cause import PUMP
from payments.models import Operation, Payment
from payments.provider import SERVER_ERROR, SERVER_ERROR_AFTER_SILENCE, Outcome, Verdict

Kind, State = Operation.Kind, Operation.State
GIVEN_UP_AFTER = timedelta(hours=1)  # a mate's authorization that the provider says nothing clear of
KEY_MARGIN = timedelta(hours=1)  # before a provider forgets a key it is not used any more
ON_ITS_WAY = timedelta(minutes=1)  # longer than any call to a provider lasts
REFUSED = (Verdict.FAILED, Verdict.DECLINED)


def finish(operation: Operation, deadline: Deadline | None = None) -> None:
    """Bring one claimed operation nearer its end. Safe to repeat: the provider knows its id.

    `deadline` was set before it was claimed: whoever slept past it sends nothing, since another has taken it over.
    """
    deadline = deadline or Deadline.after(operations.PATIENCE)
    match operation.kind:
        case Kind.AUTHORIZE:
            _finish_authorization(operation, deadline)
        case Kind.CAPTURE:
            _finish_capture(operation, deadline)
        case Kind.VOID:
            _finish_void(operation, deadline)
        case Kind.REFUND:
            _settle(operation, _sent_again(operation, deadline))


def finish_now(subject: UUID) -> None:
    """Ask the provider at once about the open operation of a checkout or share: the payer is back from their bank."""
    found = open_operations.open_operation(subject)
    with bulkheads.PAYERS.slot() as slot:
        if found is not None and slot.is_taken():
            due.make_due(found)
            _finish_one(found.pk)


def finish_all_of(checkout_uuid: UUID) -> None:
    """Finish what is due on one checkout now, each claimed when its turn comes: a lease is as long as one call."""
    for operation_uuid in due.on(checkout_uuid):
        _finish_one(operation_uuid)


def _finish_one(operation_uuid: UUID) -> None:
    deadline = Deadline.after(operations.PATIENCE)
    for operation in due.claim(operation_uuid=operation_uuid):
        finish(operation, deadline)


def _claimed(operation: Operation) -> tuple[UUID, UUID, UUID | None]:
    """Return its checkout's id, its own, and the lease under which it is asked about: what a lock may be given."""
    return operation.payment.checkout_uuid, operation.pk, operation.lease_token


def _settle(operation: Operation, outcome: Outcome | None) -> None:
    if outcome is not None:
        checkout_uuid, operation_uuid, lease = _claimed(operation)
        outcomes.record_outcome(checkout_uuid, operation_uuid, outcome, lease=lease)


def _finish_authorization(operation: Operation, deadline: Deadline) -> None:
    """Look it up. A challenge that nobody answers ends after ten minutes."""
    age, checkout_uuid = clock.now() - operation.created_at, operation.payment.checkout_uuid
    outcome = _ask_authorization(operation, age, deadline)
    if outcome.verdict == Verdict.NEEDS_ACTION and age > CHALLENGE:
        abandonment.end_challenge(checkout_uuid, operation.pk)
        return
    is_waited_for = operation.payment.abandoned_at is None
    is_silent = outcome.verdict in (Verdict.UNKNOWN, Verdict.PENDING) and age >= GIVEN_UP_AFTER
    if is_waited_for and (is_silent or (outcome.verdict == Verdict.NOT_FOUND and age >= due.PATIENT_FOR)):
        abandonment.stop_waiting(checkout_uuid, operation.pk)
    _settle(operation, outcome)


def _ask_authorization(operation: Operation, age: timedelta, deadline: Deadline) -> Outcome:
    """If it never arrived, it is sent again under the same id while the payer waits; later it may arrive yet."""
    outcome = operations.look_up(operation, deadline=deadline)
    if outcome.verdict != Verdict.NOT_FOUND:
        return outcome
    if age < due.PATIENT_FOR and operation.payment.abandoned_at is None:
        return operations.perform(operation, deadline=deadline)
    is_over = age >= due.IN_DOUBT_TOO_LONG and outcome.is_vouched
    return Outcome(Verdict.FAILED, reason="never_arrived") if is_over else outcome


def _finish_capture(operation: Operation, deadline: Deadline) -> None:
    """While it is wanted it is sent again; then it is looked up, and fenced by a void if it never arrived.

    Rules doubt.capture_before, doubt.capture_after.
    """
    if is_wanted(Checkout.objects.get(pk=operation.payment.checkout_uuid), operation):
        outcome = _sent_again(operation, deadline)
        if outcome is not None and operations.is_captured_already(outcome):
            outcome = operations.look_up_capture(operation, deadline=deadline)
        _settle(operation, outcome)
        return
    outcome = operations.look_up_capture(operation, deadline=deadline)
    fence = _begin_fence(*_claimed(operation)) if outcome.verdict == Verdict.NOT_FOUND else None
    if fence is None:
        _settle(operation, outcome)
    else:
        _finish_void(fence, deadline)


def is_wanted(checkout: Checkout, capture: Operation) -> bool:
    """Whether the money may still be asked for: of a hold until its deadline, of a mate while the order stands."""
    if capture.payment.kind == Payment.Kind.ORDER:
        return checkout.status == Status.AUTHORIZED and not checkout.has_lapsed(clock.now())
    return checkout.status == Status.CAPTURED


def _begin_fence(checkout_uuid: UUID, capture_uuid: UUID, lease: UUID | None) -> Operation | None:
    """Take a capture for lost that never arrived, and begin the void that proves it.

    None where another process has settled it meanwhile, or the provider has accepted it since.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        now = clock.now()
        operation = operations.current(capture_uuid)
        if operation.state == State.PENDING or is_wanted(checkout, operation):
            return None
        never = Outcome(Verdict.FAILED, reason="never_arrived")
        if not operations.record(operation, never, now=now, lease=lease):
            return None
        return operations.begin(operation.payment, Kind.VOID, now=now, cause=PUMP)


def _finish_void(operation: Operation, deadline: Deadline) -> None:
    """Release what is held. The refusal of a fence is understood by what became of the capture."""
    outcome = _sent_again(operation, deadline)
    checkout = Checkout.objects.get(pk=operation.payment.checkout_uuid)
    if outcome is not None and outcome.verdict in REFUSED and not operations.is_captured_already(outcome):
        seen = operations.look_up(operation, deadline=deadline)  # somebody may have released it there
        outcome = seen if seen.verdict == Verdict.SUCCEEDED else outcome
    if outcome is None or outcome.verdict not in REFUSED or not outcomes.is_fence(checkout, operation):
        _settle(operation, outcome)
        return
    captures = operation.payment.operations.filter(kind=Kind.CAPTURE).select_related("payment")
    capture = captures.order_by("-created_at").first()
    seen = operations.look_up_capture(capture, deadline=deadline) if capture else Outcome(Verdict.UNKNOWN)
    was_captured = operations.is_captured_already(outcome)
    if seen.verdict == Verdict.SUCCEEDED or (was_captured and seen.verdict == Verdict.NOT_FOUND):
        _settle(operation, Outcome(Verdict.FAILED, reason="already_captured"))
    elif was_captured:  # and whether it was our amount is not known yet
        _settle(operation, Outcome(Verdict.UNKNOWN, reason=outcome.reason))
    else:
        is_proven = seen.verdict in REFUSED or _is_vouched(seen, capture)
        outcomes.renew_fence(checkout.pk, operation.pk, reason=outcome.reason, is_proven=is_proven)


def _is_vouched(seen: Outcome, capture: Operation | None) -> bool:
    """Whether the provider knows of no capture, and the last call that was on its way has arrived by now."""
    if capture is None or capture.ended_at is None:
        return False
    is_old = clock.now() - capture.ended_at > ON_ITS_WAY
    return is_old and seen.verdict == Verdict.NOT_FOUND and seen.is_vouched


def _sent_again(operation: Operation, deadline: Deadline) -> Outcome | None:
    """Send it under its key, or ask what became of it where it must not be sent again.

    None where the provider vouches that it never arrived: it is sent anew soon, under a new key.
    Rule doubt.old_key.
    """
    if may_be_sent(operation):
        return operations.perform(operation, deadline=deadline)
    outcome = operations.look_up(operation, deadline=deadline)
    is_lost = outcome.verdict == Verdict.NOT_FOUND and outcome.is_vouched and _has_none_on_its_way(operation)
    if is_lost and _renewed(*_claimed(operation)):
        return None
    if outcome.verdict in (Verdict.NOT_FOUND, Verdict.UNKNOWN):
        return replace(outcome, reason=operation.reason)
    return outcome


def _has_none_on_its_way(operation: Operation) -> bool:
    """Whether each call under its key has been answered, or the last one was so long ago that it has arrived."""
    is_answered = operation.reason == SERVER_ERROR or operation.state == State.PENDING
    age = clock.now() - operation.created_at
    return is_answered or age >= provider.current().key_life - KEY_MARGIN + ON_ITS_WAY


def may_be_sent(operation: Operation) -> bool:
    """Not what is accepted already, nor under a key that the provider may have forgotten by now, nor under one
    for which it repeats an error of its own."""
    if operation.state == State.PENDING:
        return False
    if operation.attempts <= 1:
        return True
    age = clock.now() - operation.created_at
    is_error = operation.reason in (SERVER_ERROR, SERVER_ERROR_AFTER_SILENCE)
    is_repeated_error = is_error and operation.attempts > 2
    return age < provider.current().key_life - KEY_MARGIN and not is_repeated_error


def _renewed(checkout_uuid: UUID, operation_uuid: UUID, lease: UUID | None) -> bool:
    """Give it a new key, unless another process is at it by now."""
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        operation = operations.current(operation_uuid)
        if operation.ended_at is not None or operation.lease_token != lease:
            return False
        if operation.kind == Kind.CAPTURE and not is_wanted(checkout, operation):
            return False
        planning.renew(operation, now=clock.now())
    return True
