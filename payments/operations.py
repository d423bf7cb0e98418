"""Operations at the provider: `begin` writes one, `perform` makes the call, `save_outcome` stores the answer.

Only this module moves money at a provider. A provider is never called inside a transaction.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import structlog
from prometheus_client import Histogram

from config.lib import connection_release, failpoint
from config.lib.database import queries
from config.lib.deadline import Deadline
from config.lib.process import tracing
from payments import ledger, operation_queue, planning, provider, safe_answers, statements
from payments.cause import Cause
from payments.discrepancies import kinds, reporting
from payments.models import Operation, Payment
from payments.provider import CardUse, Outcome, Verdict

log = structlog.get_logger("payments.operations")

PATIENCE = 8.0  # maximum seconds for a whole call, if the caller does not set a deadline
CALL_SECONDS = {"authorize": 6.0, "capture": 3.0, "void": 5.0, "refund": 5.0}
LOOK_UP_SECONDS = 2.0
HELD_FOR_LESS = "held_for_less"  # reason code of an authorization that held less than the requested amount
CALLS = Histogram(
    "checkout_provider_call_seconds",
    "Time to the provider's answer, by what was asked for and what came of it",
    ["kind", "outcome"],
    buckets=(0.1, 0.25, 0.5, 1, 2, 4, 8),
)
Kind: TypeAlias = Operation.Kind
State: TypeAlias = Operation.State
Status: TypeAlias = Payment.Status

# The status of a payment after an operation has ended. The end of a refund does not change it, because a payment
# becomes `refunded` only when its whole order is refunded.
PAYMENT_AFTER: dict[tuple[str, str], Status] = {
    (Kind.AUTHORIZE, State.SUCCEEDED): Status.AUTHORIZED,
    (Kind.AUTHORIZE, State.DECLINED): Status.DECLINED,
    (Kind.AUTHORIZE, State.FAILED): Status.DECLINED,
    (Kind.CAPTURE, State.SUCCEEDED): Status.CAPTURED,
    (Kind.VOID, State.SUCCEEDED): Status.VOIDED,
}
STATE_AFTER: dict[Verdict, State] = {
    Verdict.SUCCEEDED: State.SUCCEEDED,
    Verdict.DECLINED: State.DECLINED,
    Verdict.FAILED: State.FAILED,
    Verdict.NEEDS_ACTION: State.NEEDS_ACTION,
    Verdict.PENDING: State.PENDING,
    Verdict.NOT_FOUND: State.UNKNOWN,
    Verdict.UNKNOWN: State.UNKNOWN,
}


def begin(payment: Payment, kind: Kind, *, now: datetime, cause: Cause) -> Operation:
    """Write an operation that the caller is about to perform.

    The operation is in flight, is leased for ten seconds, and counts as sent. Must be called in a transaction that
    has locked the checkout. After the commit, the caller must call `perform`.
    """
    operation = Operation(
        payment=payment,
        kind=kind,
        purpose=Operation.Purpose.PAYMENT,
        amount=payment.amount,
        state=State.IN_FLIGHT,
        attempts=1,
        first_sent_at=now,
        last_sent_at=now + operation_queue.LEASE,
        next_attempt_at=now + operation_queue.LEASE,
        lease_token=uuid4(),
        actor=cause.actor,
        request_id=cause.request_id,
        traceparent=tracing.current_traceparent(),
        created_at=now,
    )
    planning.insert_operation(operation)
    return operation


def read_operation(operation_uuid: UUID) -> Operation:
    """Return the operation with its payment, read again from the database.

    Call this function after the checkout is locked, because another process might have changed the operation before
    that.
    """
    return Operation.objects.select_related("payment").get(pk=operation_uuid)


def perform(operation: Operation, *, deadline: Deadline) -> Outcome:
    """Call the provider with the operation's id as key. Return UNKNOWN if the call fails or is not sent.

    Must be called with no transaction open. The caller must set `deadline` before it begins or claims the operation, at
    most PATIENCE seconds ahead. The call is not sent after the deadline, after the end of the lease, or with a key that
    the provider might soon forget. Rules doubt.old_key, doubt.sleeper.
    """
    wait = deadline.remaining(CALL_SECONDS[operation.kind])
    if wait <= 0 or not _record_sending(operation):
        return Outcome(Verdict.UNKNOWN)
    return _call(operation, wait, lambda: _send(operation, deadline))


def _record_sending(operation: Operation) -> bool:
    """Record that the operation is sent now. Return False if this process must not send it.

    `last_sent_at` is set to the end of a lease that starts now. The caller's deadline is earlier, so a call is never
    sent after `last_sent_at`, even if this process is suspended before its call. For a new operation, `begin` has
    already recorded this.
    """
    lease_end, last = operation.next_attempt_at, operation.last_sent_at
    if operation.lease_token is not None and lease_end is not None and last is not None and last >= lease_end:
        return True
    facts: dict[str, Any] = {
        "id": operation.pk,
        "held_lease": operation.lease_token,
        "lease": operation_queue.LEASE,
    }
    row = queries.row(statements.RECORD_SENDING, facts | {"usable_for": planning.longest_key_use()})
    if row is None:
        return False
    operation.first_sent_at, operation.last_sent_at = row
    return True


def _send(operation: Operation, deadline: Deadline) -> Outcome:
    """Make the call, unless the deadline has passed because the process was suspended after `_record_sending`.

    Rule provider.registered.
    """
    bank, payment, kind = provider.current_provider(), operation.payment, operation.kind
    if kind == Kind.AUTHORIZE and not payment.provider_reference:
        registered = bank.register(payment, deadline.remaining(CALL_SECONDS[kind]))
        if registered.verdict != Verdict.SUCCEEDED:
            return registered
        if registered.reference:
            _keep_reference(payment, safe_answers.safe_outcome(operation, registered).reference)
    wait = deadline.remaining(CALL_SECONDS[kind])
    if wait <= 0:
        return Outcome(Verdict.UNKNOWN)
    match kind:
        case Kind.AUTHORIZE:
            return bank.authorize(operation, CardUse(payment.card_token, payment.return_url), wait)
        case Kind.CAPTURE:
            return bank.capture(operation, wait)
        case Kind.VOID:
            return bank.void(operation, wait)
        case _:
            return bank.refund(operation, wait)


def _keep_reference(payment: Payment, reference: str) -> None:
    """Commit the provider's id of a payment, unless another process has already committed an id."""
    rows = Payment.objects.filter(pk=payment.pk)
    rows.filter(provider_reference="").update(provider_reference=reference)
    payment.provider_reference = rows.values_list("provider_reference", flat=True).get()


def look_up(operation: Operation, *, deadline: Deadline | None = None) -> Outcome:
    """Ask the provider for an operation's outcome. Return UNKNOWN if the call fails."""
    wait = (deadline or Deadline.after(PATIENCE)).remaining(LOOK_UP_SECONDS)
    return _call(operation, wait, lambda: provider.current_provider().look_up(operation, wait), "look_up")


def is_captured_already(outcome: Outcome) -> bool:
    """Return whether the provider refused the operation because we or someone else had already captured the money."""
    return outcome.verdict in (Verdict.FAILED, Verdict.DECLINED) and outcome.reason == "already_captured"


def look_up_capture(capture: Operation, *, deadline: Deadline | None = None) -> Outcome:
    """Look up a capture.

    If the outcome is a refusal with the reason `already_captured`, return UNKNOWN, because someone else might have
    captured the money.
    """
    outcome = look_up(capture, deadline=deadline)
    return Outcome(Verdict.UNKNOWN) if is_captured_already(outcome) else outcome


def _call(
    operation: Operation, wait: float, send_request: Callable[[], Outcome], request: str = "call"
) -> Outcome:
    if wait <= 0:
        return Outcome(Verdict.UNKNOWN)
    with tracing.span(
        f"provider {operation.kind} {request}", checkout=operation.payment.checkout_uuid
    ) as span:
        outcome = _ask_provider(operation, send_request, request)
        if span is not None:
            span.set_attribute("verdict", outcome.verdict)
    return outcome


def _ask_provider(operation: Operation, send_request: Callable[[], Outcome], request: str) -> Outcome:
    failpoint.reach(f"before_{request}", operation.kind, operation.payment.checkout_uuid)
    connection_release.release()
    started = time.monotonic()
    try:
        outcome = safe_answers.safe_outcome(operation, send_request())
    except Exception as error:
        log.warning("provider gave no answer", operation=str(operation.pk), error=type(error).__name__)
        outcome = Outcome(Verdict.UNKNOWN)
    failpoint.reach(f"after_{request}", operation.kind, operation.payment.checkout_uuid)
    outcome = _check_amount(operation, outcome)
    seconds = time.monotonic() - started
    CALLS.labels("look_up" if request == "look_up" else operation.kind, outcome.verdict).observe(seconds)
    log.info(
        "provider",
        kind=operation.kind,
        asked=request,
        operation=str(operation.pk),
        merchant=str(operation.payment.merchant_id),
        checkout=str(operation.payment.checkout_uuid),
        verdict=outcome.verdict,
        reason=outcome.reason,
        ms=round(seconds * 1000),
    )
    return outcome


def _check_amount(operation: Operation, outcome: Outcome) -> Outcome:
    """Return the outcome. If its amount is not the operation's amount, return it with a different verdict.

    An authorization that holds a different amount becomes DECLINED. Any other operation becomes UNKNOWN. There is one
    exception: if no hold of the payment was recorded, a void of any amount is accepted. The bank might have held less
    on a card that was declined or given up. Rules doubt.amount, pay.held_for_less.
    """
    releases_other_amount = operation.kind == Kind.VOID and operation.payment.status != Status.AUTHORIZED
    # Before the payer has confirmed, no money is held, and there is no amount to check.
    is_done = outcome.verdict in (Verdict.SUCCEEDED, Verdict.PENDING)
    if outcome.amount in (None, operation.amount) or releases_other_amount or not is_done:
        return outcome
    is_held = operation.kind == Kind.AUTHORIZE and outcome.verdict == Verdict.SUCCEEDED
    if not is_held or outcome.amount > operation.amount:
        reporting.report_operation(operation, kinds.ANOTHER_AMOUNT, amount=outcome.amount)
    if is_held:
        return replace(outcome, verdict=Verdict.DECLINED, reason=HELD_FOR_LESS)
    return Outcome(Verdict.UNKNOWN)


def save_outcome(operation: Operation, outcome: Outcome, *, now: datetime, lease: UUID | None) -> bool:
    """Record the provider's answer, the payment's new status and the postings.

    Return whether anything was recorded. Must be called with the checkout locked, and `operation` must have been read
    with `read_operation` under this lock. An operation that has ended is not changed, because a late answer for the
    same key can only repeat the outcome. `lease` is the lease that was valid when the provider was called. If another
    process has leased the operation since then, an unknown outcome is not recorded. Rule doubt.sleeper.
    """
    if operation.ended_at is not None:
        return False
    facts = _new_facts(operation, outcome, now)
    payment_changes = _payment_changes(operation, facts["state"], outcome)
    parameters = facts | {"state": facts["state"].value, "held_lease": lease}
    if not _write_state(statements.RECORD_OUTCOME, operation, payment_changes, **parameters):
        return False
    for name, value in facts.items():
        setattr(operation, name, value)
    if operation.state not in Operation.ENDED:
        _report_if_too_long(operation, now)
    return True


def _write_state(statement: str, operation: Operation, payment_changes: dict[str, str], **facts: Any) -> bool:
    """Run the statement that writes an operation's new state, its payment's new status, and its postings.

    Return False if the statement has not changed the operation.
    """
    lines = ledger.posting_parameters(operation, facts["state"], facts["reference"])
    unchanged = dict.fromkeys(statements.PAYMENT_OUTCOME_COLUMNS)
    if queries.execute(statement, {"id": operation.pk} | unchanged | payment_changes | lines | facts) == 0:
        return False
    for name, value in payment_changes.items():
        setattr(operation.payment, name, value)
    return True


def _report_if_too_long(operation: Operation, now: datetime) -> None:
    """Report an operation that has been without a clear answer for too long (rules doubt.day, doubt.pending)."""
    first = planning.replaced_operations(operation).order_by("created_at").first() or operation
    age = now - first.created_at
    if (
        operation.state == State.PENDING
        and operation.kind == Kind.CAPTURE
        and age > operation_queue.PENDING_TOO_LONG
    ):
        reporting.report_operation(operation, kinds.CAPTURE_PENDING_TOO_LONG, subject=first.pk)
    if age > operation_queue.IN_DOUBT_TOO_LONG:
        reporting.report_operation(operation, kinds.IN_DOUBT_FOR_A_DAY, subject=first.pk)


def _new_facts(operation: Operation, outcome: Outcome, now: datetime) -> dict[str, Any]:
    state = STATE_AFTER[outcome.verdict]
    if state == State.UNKNOWN and _keeps_state(operation, outcome):
        state = State(operation.state)
    ended = state in Operation.ENDED
    # If others made the operation at the provider, the pump neither sends it nor looks it up.
    is_of_others = operation.purpose == Operation.Purpose.OUTSIDE
    return {
        "state": state,
        "reference": outcome.reference or operation.reference,
        "reason": outcome.reason,
        "action_url": outcome.action_url or operation.action_url,
        "lease_token": None,
        "ended_at": now if ended else None,
        "next_attempt_at": None
        if ended or is_of_others
        else now + operation_queue.retry_delay(operation, state, now),
    }


def _keeps_state(operation: Operation, outcome: Outcome) -> bool:
    """Return whether the state stays the same, because an unclear answer does not revoke an earlier answer."""
    if operation.state == State.PENDING:
        return not outcome.is_vouched
    return operation.state == State.NEEDS_ACTION


def _payment_changes(operation: Operation, state: State, outcome: Outcome) -> dict[str, str]:
    """Return the changes to an operation's payment that follow from the operation's new `state`."""
    if state not in Operation.ENDED:
        return {}
    changed: dict[str, str] = {}
    status = PAYMENT_AFTER.get((operation.kind, state))
    if status is not None and not _stays_declined(operation, status):
        changed["status"] = status.value
        changed["decline_reason"] = outcome.reason or operation.payment.decline_reason
    if outcome.card is not None:
        card = outcome.card
        changed |= {"card_brand": card.brand, "card_last4": card.last4, "card_fingerprint": card.fingerprint}
    return changed


def _stays_declined(operation: Operation, new_status: Status) -> bool:
    """Return whether a voided payment stays `declined`, so that the rate limits on cards count it."""
    payment = operation.payment
    if new_status != Status.VOIDED or payment.status != Status.DECLINED:
        return False
    return payment.operations.filter(kind=Kind.AUTHORIZE, state=State.DECLINED).exists()


def save_late_success(operation: Operation, reference: str, *, now: datetime) -> None:
    """Change a failed capture or refund to succeeded, because the provider now reports that it has succeeded.

    Must be called with the checkout locked.
    """
    payment_changes = _payment_changes(operation, State.SUCCEEDED, Outcome(Verdict.SUCCEEDED))
    facts = {"state": State.SUCCEEDED, "reference": reference or operation.reference, "ended_at": now}
    _write_state(
        statements.RECORD_LATE_SUCCESS, operation, payment_changes, **facts | {"state": State.SUCCEEDED.value}
    )
    operation.reason = ""
    for name, value in facts.items():
        setattr(operation, name, value)
