"""Third phase of a call: lock the checkout again, record the outcome, and let the order follow it."""

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction

from checkout import events, settling, share_outcomes, states
from checkout.models import Checkout
from checkout.states import Status, VoidReason
from config.lib import failpoint
from payments import operation_queue, operations, planning
from payments.cause import PUMP, Cause
from payments.discrepancies import kinds, reporting
from payments.models import Operation, Payment
from payments.provider import Outcome, Verdict
from webhooks import outbox

Kind, State = Operation.Kind, Operation.State
AGAIN_AFTER = timedelta(seconds=10)  # before a refused release is sent again; later gaps are longer
AGAIN_AT_LATEST = timedelta(hours=6)
HOLDS_LAST = timedelta(days=8)  # banks release a hold automatically after a week
TOLD_AFTER = 3  # refusals before a report: one or two can be a passing fault of the provider


class Recorded(NamedTuple):
    """Operation and checkout after an outcome was recorded. `is_kept` says whether it was this outcome."""

    operation: Operation
    checkout: Checkout
    is_kept: bool


def record_outcome(
    checkout_uuid: UUID, operation_uuid: UUID, outcome: Outcome, *, lease: UUID | None
) -> Recorded:
    """Lock the checkout again, read the operation again, and record its outcome.

    `lease` is the lease under which the provider was asked. If another process has recorded a result since,
    that result stays. Rule doubt.sleeper.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        now = checkout.locked_at
        operation = operations.read_operation(operation_uuid)
        before = (operation.state, checkout.status)
        is_kept = conclude(checkout, operation, outcome, now=now, lease=lease)
        if is_kept and operation.state != before[0] and checkout.status == before[1]:
            checkout.touch()
        if not is_kept and outcome.verdict in (Verdict.SUCCEEDED, Verdict.PENDING):
            _follow_late(operation, now)
        failpoint.reach("before_commit", operation.kind, checkout.pk)
    failpoint.reach("after_commit", operation.kind, checkout.pk)
    return Recorded(operation, checkout, is_kept)


def conclude(
    checkout: Checkout, operation: Operation, outcome: Outcome, *, now: datetime, lease: UUID | None = None
) -> bool:
    """Record an operation's outcome and let the order follow; return whether an outcome was recorded.

    Must be called with the checkout locked. Both rows must be read under the lock.
    """
    if not operations.record(operation, _judge_outcome(checkout, operation, outcome), now=now, lease=lease):
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


def _follow_late(operation: Operation, now: datetime) -> None:
    """Handle a call that succeeded although its operation has already ended.

    If another key had replaced it, the call is reported. A hold that no order waits for is released.
    """
    if operation.reason == "new_key":
        reporting.report_operation(operation, kinds.SUCCEEDED_UNDER_AN_OLD_KEY)
    elif operation.has_ended_without_hold:
        share_outcomes.release(operation.payment, now)


def _judge_outcome(checkout: Checkout, operation: Operation, outcome: Outcome) -> Outcome:
    """Return the outcome, or UNKNOWN for a fence that was refused.

    Only success or `already_captured` at a fence proves whether a capture happened.
    """
    refused = outcome.verdict in (Verdict.FAILED, Verdict.DECLINED) and outcome.reason != "already_captured"
    if refused and is_fence(checkout, operation):
        return Outcome(Verdict.UNKNOWN, reason=outcome.reason)
    return outcome


def is_fence(checkout: Checkout, operation: Operation) -> bool:
    """Return whether the operation is a fence: a void that proves whether a capture happened.

    It is the void of money that is still to be captured.
    """
    if operation.kind != Kind.VOID:
        return False
    if operation.payment.kind == Payment.Kind.SHARE:
        return share_outcomes.is_fenced(operation.payment)
    return checkout.payment_id == operation.payment_id and checkout.status == Status.AUTHORIZED


def _record_authorization(checkout: Checkout, operation: Operation, now: datetime) -> None:
    # A payment that exists at the provider can be confirmed again by the payer's browser until it is ended
    # there.
    may_hold_yet = operation.reason == operations.HELD_FOR_LESS or bool(operation.payment.provider_reference)
    if operation.has_ended_without_hold and may_hold_yet:
        share_outcomes.release(operation.payment, now)
    follow = {Payment.Kind.ORDER: _hold_order, Payment.Kind.SHARE: share_outcomes.record_authorization}
    follow[Payment.Kind(operation.payment.kind)](checkout, operation, now)


def _hold_order(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Move the order to `authorized` after its hold, or release the hold of an unwanted card.

    The order's two minutes begin now, even if the hold was found only later. The card is unwanted if the
    order no longer waits for it. Rule doubt.authorize.
    """
    if operation.state != State.SUCCEEDED or checkout.payment_id == operation.payment_id:
        return
    # the payer can have changed to another card while the bank was asked
    if checkout.status != Status.CREATED or operation.payment.abandoned_at is not None:
        share_outcomes.release(operation.payment, now)
        return
    checkout.move(
        Status.AUTHORIZED,
        _cause_of(operation),
        now,
        payment=operation.payment,
        authorized_at=now,
        capture_before=now + settings.HOLD,
    )
    events.authorized(checkout, now)


def _record_capture(checkout: Checkout, operation: Operation, now: datetime) -> None:
    follow = {Payment.Kind.ORDER: _capture_order, Payment.Kind.SHARE: share_outcomes.record_capture}
    follow[Payment.Kind(operation.payment.kind)](checkout, operation, now)


def _capture_order(checkout: Checkout, operation: Operation, now: datetime) -> None:
    deadline = checkout.capture_before
    if operation.state == State.UNKNOWN and deadline is not None and now < deadline:
        operation_queue.no_later_than(
            operation, deadline
        )  # at the deadline, find out whether the hold was taken
    if operation.state != State.SUCCEEDED or checkout.status in states.PAID:
        return
    if checkout.status != Status.AUTHORIZED:
        _report_unwanted_charge(operation, checkout)
        return
    _mark_captured(checkout, _cause_of(operation), now)


def _mark_captured(checkout: Checkout, cause: Cause, now: datetime) -> None:
    """Move the order to `captured`, supersede the event of its hold, and open the mates' links."""
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
        recover(checkout, captures.latest("created_at"), "", now)
    elif was_captured:
        _report_unwanted_charge(operation, checkout)
    elif is_refused:
        _release_again(operation, now)
    elif operation.payment.kind == Payment.Kind.SHARE:
        share_outcomes.record_void(checkout, operation, now)
    elif operation.state == State.SUCCEEDED and is_fence(checkout, operation):
        _lapse_order(checkout, now)


def _report_unwanted_charge(operation: Operation, checkout: Checkout) -> None:
    """Report, once for each payment, a card that was charged although no order waited for it any more."""
    reporting.report_operation(
        operation, kinds.CAPTURED_AFTER_THE_END, subject=operation.payment_id, status=checkout.status
    )


def recover(checkout: Checkout, operation: Operation, reference: str, now: datetime) -> None:
    """Record that a capture or refund that counted as failed has happened, and let the order follow.

    Must be called with the checkout locked.
    """
    operations.recover(operation, reference, now=now)
    if operation.kind == Kind.REFUND:
        _record_refund(checkout, operation, now)
    elif operation.payment.kind == Payment.Kind.SHARE:
        share_outcomes.record_capture(checkout, operation, now)
    else:
        _capture_order(checkout, operation, now)


def _lapse_order(checkout: Checkout, now: datetime) -> None:
    """Void a held order as of its deadline, because its hold was not captured in time.

    If the deadline has not passed yet, the hold was released by a cancel that a restore has lost.
    """
    at = min(checkout.capture_before or now, now)
    reason = VoidReason.AUTH_EXPIRED if checkout.has_lapsed(now) else VoidReason.MERCHANT_CANCEL
    checkout.move(Status.VOIDED, PUMP, at, voided_at=at, void_reason=reason)
    share_outcomes.end_drafts([checkout], now)
    events.voided([checkout])


def _release_again(refused: Operation, now: datetime) -> None:
    """Plan a refused release again, at growing intervals, until banks have ended the hold.

    Rule lapse.release.
    """
    voids = refused.payment.operations.filter(kind=Kind.VOID)
    if voids.filter(ended_at=None).exists() or now - refused.payment.created_at > HOLDS_LAST:
        return
    times = voids.count()
    later = now + min(AGAIN_AFTER * 4 ** min(times - 1, 7), AGAIN_AT_LATEST)
    planning.plan_void_again(refused, at=later, cause=PUMP)
    if times >= TOLD_AFTER:
        reporting.report_operation(
            refused, kinds.VOID_REFUSED, subject=refused.payment_id, reason=refused.reason
        )


def renew_fence(checkout_uuid: UUID, fence_uuid: UUID, *, reason: str, is_proven: bool) -> None:
    """Renew a refused fence under a new key, unless the refusal says that the money was captured.

    If `is_proven` is true, the provider has said that no capture happened, and the hold is given up at once.
    After HOLDS_LAST the fence is not renewed, and the hold is given up too.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        now = checkout.locked_at
        fence = operations.read_operation(fence_uuid)
        if fence.ended_at is not None or not is_fence(checkout, fence):
            return
        times = fence.payment.operations.filter(kind=Kind.VOID).count()
        if times >= TOLD_AFTER:
            reporting.report_operation(fence, kinds.VOID_REFUSED, subject=fence.payment_id, reason=reason)
        is_over = now - fence.payment.created_at > HOLDS_LAST
        if is_over:
            operations.record(fence, Outcome(Verdict.FAILED, reason=reason), now=now, lease=None)
        else:
            planning.renew(fence, now=now, at=now + min(AGAIN_AFTER * times, timedelta(minutes=1)))
        if is_proven or is_over:
            _give_up_hold(checkout, fence.payment, now)


def _give_up_hold(checkout: Checkout, payment: Payment, now: datetime) -> None:
    """Give up a hold that was not captured and will not be, without waiting for its release."""
    if payment.kind == Payment.Kind.SHARE:
        share_outcomes.let_go(checkout, payment, now)
    else:
        _lapse_order(checkout, now)


def _record_refund(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Close the reports about a refund that has reached its card, and settle the order again."""
    if operation.ended_at is None:
        return
    if operation.state == State.SUCCEEDED:
        note = "The card has got it."
        for subject in (operation.payment_id, operation.share_uuid):
            for kind in (kinds.REFUND_PART_FAILED, kinds.SHARE_NOT_REIMBURSED):
                reporting.close_resolved(kind, subject, note=note, now=now)
        if operation.purpose == Operation.Purpose.REFUND_PART:
            share_outcomes.end_refunded(operation.payment, now)
    settling.settle(checkout, now)


def _cause_of(operation: Operation) -> Cause:
    return Cause(operation.actor, operation.request_id)
