"""Finishing what was begun: each operation whose time has come is brought to the truth (INTERFACE.md 10)."""

from datetime import timedelta
from uuid import UUID

from django.db import transaction

from checkout import deadlines, settlement
from checkout.deadlines import CHALLENGE
from checkout.models import Checkout
from config.lib import clock
from payments import bulkheads, due, operations
from payments.cause import PUMP
from payments.models import Operation
from payments.provider import Outcome, Verdict

Kind, State = Operation.Kind, Operation.State


def finish(operation: Operation) -> None:
    """Bring one claimed operation nearer its end. Safe to repeat: the provider knows its id."""
    match operation.kind:
        case Kind.AUTHORIZE:
            _finish_authorization(operation)
        case Kind.CAPTURE:
            _finish_capture(operation)
        case Kind.VOID:
            settlement.settle(operation, operations.perform(operation))
        case Kind.REFUND:
            settlement.settle(operation, _ask_refund(operation))


def finish_now(subject: UUID) -> None:
    """Ask the provider at once about the open operation of a checkout or share: the payer is back from their bank."""
    found = operations.open_operation(subject)
    with bulkheads.PAYERS.slot() as slot:
        if found is None or not slot.is_taken():
            return
        due.at_once(found)
        for operation in due.claim(checkout_uuid=found.payment.checkout_uuid):
            finish(operation)


def _finish_authorization(operation: Operation) -> None:
    """Look it up. A challenge that nobody answers ends after ten minutes."""
    age = clock.now() - operation.created_at
    outcome = _ask_authorization(operation, age)
    if outcome.verdict == Verdict.NEEDS_ACTION and age > CHALLENGE:
        with transaction.atomic(durable=True):
            Checkout.objects.locked(operation.payment.checkout_uuid)
            settlement.end_challenge(operation, "challenge_expired", clock.now())
        return
    if outcome.verdict == Verdict.NOT_FOUND and age >= due.PATIENT_FOR:
        deadlines.stop_waiting(operation)
    settlement.settle(operation, outcome)


def _ask_authorization(operation: Operation, age: timedelta) -> Outcome:
    """If it never arrived, it is sent again under the same id while the payer waits; later it may arrive yet."""
    outcome = operations.look_up(operation)
    if outcome.verdict != Verdict.NOT_FOUND:
        return outcome
    if age < due.PATIENT_FOR and operation.payment.abandoned_at is None:
        return operations.perform(operation)
    return outcome if age < due.IN_DOUBT_TOO_LONG else Outcome(Verdict.FAILED, reason="never_arrived")


def _finish_capture(operation: Operation) -> None:
    """Before the deadline it is sent again; after it, looked up, and fenced by a void if it never arrived."""
    checkout = Checkout.objects.get(pk=operation.payment.checkout_uuid)
    if not checkout.has_lapsed(clock.now()):
        settlement.settle(operation, operations.perform(operation))
        return
    outcome = operations.look_up(operation)
    if outcome.verdict != Verdict.NOT_FOUND:
        settlement.settle(operation, outcome)
        return
    with transaction.atomic(durable=True):
        Checkout.objects.locked(checkout.pk)
        now = clock.now()
        ended = operations.record(operation, Outcome(Verdict.FAILED, reason="never_arrived"), now=now)
        if ended is not operation:
            return  # another pump was quicker
        fence = operations.begin(ended.payment, Kind.VOID, now=now, cause=PUMP)
    settlement.settle(fence, operations.perform(fence))


def _ask_refund(operation: Operation) -> Outcome:
    """What the provider has accepted is looked up; anything else is sent, again under the same id."""
    if operation.state == State.PENDING:
        return operations.look_up(operation)
    return operations.perform(operation)
