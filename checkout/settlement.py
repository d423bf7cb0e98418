"""The third beat: the checkout is locked again and what the provider said is recorded."""

from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from checkout import events, shares, states
from checkout.models import Checkout
from checkout.states import Status, VoidReason
from config.lib import clock, failpoint
from payments import discrepancies, due, operations
from payments.cause import PUMP, Cause
from payments.models import Operation, Payment
from payments.provider import Outcome, Verdict
from webhooks import outbox

Kind, State = Operation.Kind, Operation.State


class Settled(NamedTuple):
    """An operation and its checkout, as they stand after the provider's answer."""

    operation: Operation
    checkout: Checkout


def settle(operation: Operation, outcome: Outcome) -> Settled:
    """Lock the checkout again and record what the provider said of an operation."""
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(operation.payment.checkout_uuid)
        now = clock.now()
        settled = operations.record(operation, _judged(checkout, operation, outcome), now=now)
        match settled.kind:
            case Kind.AUTHORIZE:
                _settle_authorization(checkout, settled, now)
            case Kind.CAPTURE:
                _settle_capture(checkout, settled, now)
            case Kind.VOID:
                _settle_void(checkout, settled, now)
            case Kind.REFUND:
                _settle_refund(checkout, settled, now)
        failpoint.reach("before_commit", settled.kind, checkout.pk)
    failpoint.reach("after_commit", settled.kind, checkout.pk)
    return Settled(settled, checkout)


def _judged(checkout: Checkout, operation: Operation, outcome: Outcome) -> Outcome:
    """A fence proves something only by its success, or by `already_captured`; any other no leaves the doubt."""
    is_fence = operation.kind == Kind.VOID and checkout.status == Status.AUTHORIZED
    is_fence = is_fence and checkout.payment_id == operation.payment_id
    refused = outcome.verdict in (Verdict.FAILED, Verdict.DECLINED) and outcome.reason != "already_captured"
    return Outcome(Verdict.UNKNOWN, reason=outcome.reason) if is_fence and refused else outcome


def _settle_authorization(checkout: Checkout, operation: Operation, now: datetime) -> None:
    if shares.is_of_share(operation.payment):
        shares.settle_authorization(checkout, operation, now)
        return
    if operation.state != State.SUCCEEDED or checkout.payment_id == operation.payment_id:
        return
    # read under the lock: the payer may have gone on with another card while the bank was asked
    is_wanted = Payment.objects.filter(pk=operation.payment_id, abandoned_at=None).exists()
    if checkout.status != Status.CREATED or not is_wanted:
        shares.release(operation.payment, now)
        return
    checkout.move(
        Status.AUTHORIZED,
        _cause(operation),
        now,
        payment=operation.payment,
        authorized_at=now,
        capture_before=now + settings.HOLD,
    )
    events.authorized(checkout, now)


def _settle_capture(checkout: Checkout, operation: Operation, now: datetime) -> None:
    if shares.is_of_share(operation.payment):
        shares.settle_capture(checkout, operation, now)
        return
    deadline = checkout.capture_before
    if operation.state == State.UNKNOWN and deadline is not None and now < deadline:
        due.no_later_than(operation, deadline)  # the hold ends there, or was taken: who waits shall know
    if operation.state != State.SUCCEEDED or checkout.status in states.PAID:
        return
    if checkout.status != Status.AUTHORIZED:
        discrepancies.report_operation(operation, "captured_after_the_end", status=checkout.status)
        return
    _take(checkout, _cause(operation), now)


def _take(checkout: Checkout, cause: Cause, now: datetime) -> None:
    """The money has moved: nothing is left to be told of the hold, and the mates may pay."""
    checkout.move(Status.CAPTURED, cause, now, captured_at=now)
    outbox.supersede(checkout.pk, now)
    shares.open_links(checkout, now)


def _settle_void(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """A void of a checkout that is still held is the fence: it proves that no capture happened, or one did."""
    was_captured = operation.state == State.FAILED and operation.reason == "already_captured"
    if checkout.payment_id != operation.payment_id or checkout.status != Status.AUTHORIZED:
        if was_captured:
            discrepancies.report_operation(operation, "void_refused_as_captured", status=checkout.status)
        elif operation.state == State.FAILED:
            discrepancies.report_operation(operation, "void_refused", reason=operation.reason)
        elif shares.is_of_share(operation.payment):
            shares.settle_void(checkout, operation, now)
    elif operation.state == State.SUCCEEDED:
        at = checkout.capture_before or now
        checkout.move(Status.VOIDED, PUMP, at, voided_at=at, void_reason=VoidReason.AUTH_EXPIRED)
        shares.end_drafts([checkout], now)
        events.voided([checkout])
    elif was_captured:
        operations.recover_capture(operation.payment, now=now)
        _take(checkout, PUMP, now)


def _settle_refund(checkout: Checkout, operation: Operation, now: datetime) -> None:
    if operation.share_uuid is not None:
        shares.settle_reimbursement(checkout, operation, operation.share_uuid, now)
    else:
        shares.settle_leg(checkout, operation, now)


def end_challenge(operation: Operation, reason: str, now: datetime) -> None:
    """End an authorization that the payer has not confirmed; should they do so yet, the hold is released.

    Belongs under the checkout's lock.
    """
    ended = operations.record(operation, Outcome(Verdict.FAILED, reason=reason), now=now)
    if ended is operation:  # nobody else has ended it since
        shares.release(ended.payment, now)
        if shares.is_of_share(ended.payment):
            shares.free_of(ended.payment, now)


def _cause(operation: Operation) -> Cause:
    return Cause(operation.actor, operation.request_id)
