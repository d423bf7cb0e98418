"""Third phase of a card operation: locks the checkout, records the outcome, and updates the order.

Other modules carry out the first two phases: they commit the intent and call the provider.
"""

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction

from checkout import events, pledges, settling, share_outcomes, states
from checkout.models import Checkout
from checkout.states import Status, VoidReason
from config.lib import failpoint
from payments import operation_queue, operations, planning
from payments.cause import PUMP, Cause
from payments.discrepancies import kinds, reporting
from payments.inquiring import inquiries
from payments.models import Operation, Payment
from payments.provider import Outcome, Verdict
from webhooks import outbox

Kind, State = Operation.Kind, Operation.State
# Delay before a refused void is sent again for the first time. The delay grows with each refusal.
VOID_RETRY_DELAY = timedelta(seconds=10)
MAX_VOID_RETRY_DELAY = timedelta(hours=6)
# No hold lasts longer than this, because banks release a hold automatically after a week.
MAX_HOLD_LIFETIME = timedelta(days=8)
# A void is reported to the operators after this many refusals. One or two refusals can be a temporary fault.
REPORT_AFTER_REFUSALS = 3


class RecordedOutcome(NamedTuple):
    """The operation and the checkout after `record_outcome`.

    `is_kept` is false if the outcome was not recorded, because another process had already recorded an outcome.
    """

    operation: Operation
    checkout: Checkout
    is_kept: bool


def record_outcome(
    checkout_uuid: UUID, operation_uuid: UUID, outcome: Outcome, *, lease: UUID | None
) -> RecordedOutcome:
    """Lock the checkout, read the operation again, and record the outcome.

    `lease` is the lease that was valid when the provider was called. If another process has recorded an outcome in
    the meantime, that outcome is not changed. Rule doubt.sleeper.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        now = checkout.locked_at
        operation = operations.read_operation(operation_uuid)
        outcome = _judge_answer(operation, outcome)
        old_statuses = (operation.state, checkout.status)
        is_kept = conclude_operation(checkout, operation, outcome, now=now, lease=lease)
        if is_kept and operation.state != old_statuses[0] and checkout.status == old_statuses[1]:
            checkout.touch()
        if not is_kept and outcome.verdict in (Verdict.SUCCEEDED, Verdict.PENDING):
            _handle_late_success(operation, now)
        failpoint.reach("before_commit", operation.kind, checkout.pk)
    failpoint.reach("after_commit", operation.kind, checkout.pk)
    return RecordedOutcome(operation, checkout, is_kept)


def conclude_operation(
    checkout: Checkout, operation: Operation, outcome: Outcome, *, now: datetime, lease: UUID | None = None
) -> bool:
    """Record an operation's outcome and update the order. Return whether the outcome was recorded.

    The checkout must be locked, and `operation` must be read under the lock.
    """
    if not operations.save_outcome(
        operation, _judge_outcome(checkout, operation, outcome), now=now, lease=lease
    ):
        return False
    _apply_outcome(checkout, operation, now)
    return True


def _apply_outcome(checkout: Checkout, operation: Operation, now: datetime) -> None:
    match operation.kind:
        case Kind.AUTHORIZE:
            _record_authorization(checkout, operation, now)
        case Kind.CAPTURE:
            _record_capture(checkout, operation, now)
        case Kind.VOID:
            _record_void(checkout, operation, now)
        case Kind.REFUND:
            _record_refund(checkout, operation, now)


def _handle_late_success(operation: Operation, now: datetime) -> None:
    """Handle the success of an operation that had already ended without success.

    If the operation was replaced by one with a new key, the success is reported. If it is an authorization that
    counts as declined or failed, its hold is released.
    """
    if operation.reason == "new_key":
        reporting.report_operation(operation, kinds.SUCCEEDED_UNDER_AN_OLD_KEY)
    elif operation.has_ended_without_hold:
        share_outcomes.release_payment(operation.payment, now)


def _judge_outcome(checkout: Checkout, operation: Operation, outcome: Outcome) -> Outcome:
    """Return the outcome. If a fence was refused (see `is_fence`), return UNKNOWN instead.

    The refusal `already_captured` is returned unchanged, because it proves that the capture happened.
    """
    if _is_refusal(outcome) and outcome.reason != "already_captured" and is_fence(checkout, operation):
        return Outcome(Verdict.UNKNOWN, reason=outcome.reason)
    return outcome


def _judge_answer(operation: Operation, outcome: Outcome) -> Outcome:
    """Return the provider's answer. If it is a refusal of only one of several calls, return UNKNOWN.

    If a capture or refund was sent more than once, a refusal might concern only one of the calls. Another call can then
    still move the money, unless the provider has stored the refusal. `operation` must be read under the lock, because
    another process might have sent it in the meantime. Rule doubt.refusal.
    """
    is_of_one_call = operation.kind == Kind.REFUND and planning.was_sent_again(operation)
    if operation.kind == Kind.CAPTURE:
        is_of_one_call = planning.was_sent_again(operation) or has_earlier_key(operation)
    if is_of_one_call and _is_refusal(outcome) and not outcome.reference:
        return Outcome(Verdict.UNKNOWN, reason=outcome.reason)
    return outcome


def needs_fence(capture: Operation, outcome: Outcome) -> bool:
    """Return whether a void must prove that a refused capture did not happen under an earlier key.

    This is so only for the capture of a share. The capture of an order is sent until the deadline, and then fenced.
    """
    is_of_share = capture.payment.kind == Payment.Kind.SHARE
    return is_of_share and _is_refusal(outcome) and not outcome.reference and has_earlier_key(capture)


def has_earlier_key(capture: Operation) -> bool:
    """Return whether a capture was also sent under an earlier key."""
    return planning.replaced_operations(capture).exists()


def _is_refusal(outcome: Outcome) -> bool:
    return outcome.verdict in (Verdict.FAILED, Verdict.DECLINED)


def is_fence(checkout: Checkout, operation: Operation) -> bool:
    """Return whether the operation is a fence: a void that proves whether a capture happened.

    A void is a fence while the order or share still waits for the capture of the same payment.
    """
    if operation.kind != Kind.VOID:
        return False
    if operation.payment.kind == Payment.Kind.SHARE:
        return share_outcomes.is_void_a_fence(operation.payment)
    return checkout.payment_id == operation.payment_id and checkout.status == Status.AUTHORIZED


def _record_authorization(checkout: Checkout, operation: Operation, now: datetime) -> None:
    # If a payment exists at the provider and has not been ended there, the payer's browser can still confirm it. A
    # void prevents this. Rule pay.confirmed_again.
    may_hold_yet = operation.reason == operations.HELD_FOR_LESS or bool(operation.payment.provider_reference)
    if operation.has_ended_without_hold and may_hold_yet:
        share_outcomes.release_payment(operation.payment, now)
    if operation.has_ended_without_hold and planning.was_sent_again(operation):
        # The refusal is about only one of the calls, so another call can still hold the card (rule sync.late_holds).
        inquiries.open_inquiries([operation.payment_id])
    follow = {Payment.Kind.ORDER: _hold_order, Payment.Kind.SHARE: share_outcomes.record_authorization}
    follow[Payment.Kind(operation.payment.kind)](checkout, operation, now)


def _hold_order(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Move the order to `authorized` after a successful hold, or release the hold if it is not wanted.

    The merchant has two minutes for the capture from now on, even if the hold was made earlier. A hold is not wanted
    if the order no longer waits for this card. Rules doubt.authorize, pay.declined.
    """
    if operation.state != State.SUCCEEDED or checkout.payment_id == operation.payment_id:
        return
    # While the bank was deciding, the payer might have switched to another card.
    if checkout.status != Status.CREATED or operation.payment.abandoned_at is not None:
        share_outcomes.release_payment(operation.payment, now)
        return
    checkout.move(
        Status.AUTHORIZED,
        _cause_of(operation),
        now,
        payment=operation.payment,
        authorized_at=now,
        capture_before=now + settings.HOLD,
    )
    pledges.end_those_of_lead(checkout, now)
    events.emit_authorized(checkout, now)


def _record_capture(checkout: Checkout, operation: Operation, now: datetime) -> None:
    follow = {Payment.Kind.ORDER: _capture_order, Payment.Kind.SHARE: share_outcomes.record_capture}
    follow[Payment.Kind(operation.payment.kind)](checkout, operation, now)


def _capture_order(checkout: Checkout, operation: Operation, now: datetime) -> None:
    deadline = checkout.capture_before
    if operation.state == State.UNKNOWN and deadline is not None and now < deadline:
        # At the deadline, the capture must be looked up, to find out whether it took the money.
        operation_queue.make_due_by(operation, deadline)
    if operation.state != State.SUCCEEDED or checkout.status in states.PAID:
        return
    if checkout.status != Status.AUTHORIZED:
        _report_unwanted_charge(operation, checkout)
        return
    _mark_captured(checkout, _cause_of(operation), now)


def _mark_captured(checkout: Checkout, cause: Cause, now: datetime) -> None:
    """Move the order to `captured`, supersede the event about its hold, and open the mates' pay links."""
    checkout.move(Status.CAPTURED, cause, now, captured_at=now)
    outbox.supersede_all({checkout.pk: now})
    share_outcomes.open_links(checkout, now)


def _record_void(checkout: Checkout, operation: Operation, now: datetime) -> None:
    is_refused = operation.state in (State.FAILED, State.DECLINED)
    was_captured = is_refused and operation.reason == "already_captured"
    if was_captured or operation.state == State.SUCCEEDED:
        reporting.close_resolved(
            kinds.VOID_REFUSED, operation.payment_id, note="Nothing is held any more.", now=now
        )
    if was_captured and is_fence(checkout, operation):
        captures = operation.payment.operations.filter(kind=Kind.CAPTURE).select_related("payment")
        apply_late_success(checkout, captures.latest("created_at"), "", now)
    elif was_captured:
        # Otherwise, the card would count as held for ever, because no release of it can succeed.
        Payment.objects.filter(pk=operation.payment_id).update(status=Payment.Status.CAPTURED)
        _report_unwanted_charge(operation, checkout)
    elif is_refused:
        _plan_void_again(operation, now)
    elif operation.payment.kind == Payment.Kind.SHARE:
        share_outcomes.record_void(checkout, operation, now)
    elif operation.state == State.SUCCEEDED and is_fence(checkout, operation):
        _lapse_order(checkout, now)


def _report_unwanted_charge(operation: Operation, checkout: Checkout) -> None:
    """Report that a card was charged although the order no longer waited for it.

    Each payment is reported only once.
    """
    reporting.report_operation(
        operation, kinds.CAPTURED_AFTER_THE_END, subject=operation.payment_id, status=checkout.status
    )


def apply_late_success(checkout: Checkout, operation: Operation, reference: str, now: datetime) -> None:
    """Record the success of a capture or refund that counted as failed, and update the order.

    Must be called with the checkout locked.
    """
    operations.save_late_success(operation, reference, now=now)
    if operation.kind == Kind.REFUND:
        _record_refund(checkout, operation, now)
    elif operation.payment.kind == Payment.Kind.SHARE:
        share_outcomes.record_capture(checkout, operation, now)
    else:
        _capture_order(checkout, operation, now)


def _lapse_order(checkout: Checkout, now: datetime) -> None:
    """Void a held order whose hold was released without a capture.

    The recorded time is the deadline, if it has passed. Otherwise, the merchant must have cancelled the order, and a
    restore has lost the record of the cancellation.
    """
    at = min(checkout.capture_before or now, now)
    reason = VoidReason.AUTH_EXPIRED if checkout.has_lapsed(now) else VoidReason.MERCHANT_CANCEL
    checkout.move(Status.VOIDED, PUMP, at, voided_at=at, void_reason=reason)
    pledges.end_with_orders([checkout], now)
    events.emit_voided([checkout])


def _plan_void_again(refused: Operation, now: datetime) -> None:
    """Plan a refused void again, with growing delays. Stop when the bank must have released the hold.

    Rule lapse.release.
    """
    voids = refused.payment.operations.filter(kind=Kind.VOID)
    if voids.filter(ended_at=None).exists() or _is_released_by_bank(refused.payment, now):
        return
    times = voids.count()
    later = now + min(VOID_RETRY_DELAY * 4 ** min(times - 1, 7), MAX_VOID_RETRY_DELAY)
    planning.plan_void_again(refused, at=later, cause=PUMP)
    if times >= REPORT_AFTER_REFUSALS:
        reporting.report_operation(
            refused, kinds.VOID_REFUSED, subject=refused.payment_id, reason=refused.reason
        )


def _is_released_by_bank(payment: Payment, now: datetime) -> bool:
    """Return whether the payment is so old that its bank must have released the hold automatically."""
    return now - payment.created_at > MAX_HOLD_LIFETIME


def renew_fence(checkout_uuid: UUID, fence_uuid: UUID, *, reason: str, is_proven: bool) -> None:
    """Plan a refused fence (see `is_fence`) again under a new key.

    If `is_proven`, the provider has reported that there was no capture, and the hold is given up at once. After
    MAX_HOLD_LIFETIME, the fence does not get a new key. It ends as failed, and the hold is given up too.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        now = checkout.locked_at
        fence = operations.read_operation(fence_uuid)
        if fence.ended_at is not None or not is_fence(checkout, fence):
            return
        times = fence.payment.operations.filter(kind=Kind.VOID).count()
        if times >= REPORT_AFTER_REFUSALS:
            reporting.report_operation(fence, kinds.VOID_REFUSED, subject=fence.payment_id, reason=reason)
        is_over = _is_released_by_bank(fence.payment, now)
        if is_over:
            operations.save_outcome(fence, Outcome(Verdict.FAILED, reason=reason), now=now, lease=None)
        else:
            planning.replace_under_new_key(
                fence, now=now, at=now + min(VOID_RETRY_DELAY * times, timedelta(minutes=1))
            )
        if is_proven or is_over:
            _give_up_hold(checkout, fence.payment, now)


def _give_up_hold(checkout: Checkout, payment: Payment, now: datetime) -> None:
    """Void the order or reopen the share at once, without waiting until the release of the hold is confirmed."""
    if payment.kind == Payment.Kind.SHARE:
        share_outcomes.give_up_card(checkout, payment, now)
    else:
        _lapse_order(checkout, now)


def _record_refund(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Settle the order after a refund operation has ended. If it succeeded, close the reports about it."""
    if operation.ended_at is None:
        return
    if operation.state == State.SUCCEEDED:
        note = "The card has got it."
        for subject in (operation.payment_id, operation.share_uuid):
            for kind in (kinds.REFUND_PART_FAILED, kinds.SHARE_NOT_REIMBURSED):
                reporting.close_resolved(kind, subject, note=note, now=now)
        if operation.purpose == Operation.Purpose.REFUND_PART:
            share_outcomes.mark_refunded(operation.payment, now)
    settling.settle(checkout, now)


def _cause_of(operation: Operation) -> Cause:
    return Cause(operation.actor, operation.request_id)
