"""Finishing what was begun: each operation whose time has come is brought to the truth (INTERFACE.md 10)."""

from datetime import timedelta

from django.db import transaction

from checkout import refunds, settlement
from checkout.models import Checkout
from config.lib import clock
from payments import operations
from payments.cause import PUMP
from payments.models import Operation
from payments.provider import Outcome, Verdict

RESEND_WITHIN = timedelta(minutes=1)
Kind, State = Operation.Kind, Operation.State


def finish(operation: Operation) -> None:
    """Bring one claimed operation nearer its end. Safe to repeat: the provider knows its id."""
    match operation.kind:
        case Kind.AUTHORIZE:
            settlement.settle(operation, _ask_authorization(operation))
        case Kind.CAPTURE:
            _finish_capture(operation)
        case Kind.VOID:
            settlement.settle(operation, operations.perform(operation))
        case Kind.REFUND:
            refunds.settle(operation, _ask_refund(operation))


def _ask_authorization(operation: Operation) -> Outcome:
    """Look it up; if it never arrived and the customer may still wait, send it again under the same id."""
    outcome = operations.look_up(operation)
    if outcome.verdict != Verdict.NOT_FOUND:
        return outcome
    if clock.now() - operation.created_at < RESEND_WITHIN:
        return operations.perform(operation, card_token=operation.payment.card_token)
    return Outcome(Verdict.FAILED, reason="never_arrived")


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
        fence = operations.begin(ended.payment, Kind.VOID, now=now, cause=PUMP)
    settlement.settle(fence, operations.perform(fence))


def _ask_refund(operation: Operation) -> Outcome:
    """What the provider has accepted is looked up; anything else is sent, again under the same id."""
    if operation.state == State.PENDING:
        return operations.look_up(operation)
    return operations.perform(operation)
