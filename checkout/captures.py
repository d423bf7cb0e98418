"""Captures a checkout: the merchant takes the money that is held.

A capture has three phases. The service first commits the intent. It then calls the provider while no
transaction is open. Finally, it locks the checkout again and records the outcome.
"""

import time
from typing import TypeAlias
from uuid import UUID

from django.db import transaction

from checkout import expiry, outcomes
from checkout.models import Checkout
from checkout.states import OperationInProgress, StateConflict, Status
from config.lib import connection_release
from config.lib.bulkhead import Slot
from config.lib.deadline import Deadline
from payments import bulkheads, open_operations, operations, operator_stops
from payments.cause import Cause
from payments.models import Merchant, Operation
from payments.provider import Outcome, Verdict

# Time limit for a whole capture call. A merchant might capture while it handles a webhook, and the merchant must answer
# the webhook within 15 s.
CAPTURE_SECONDS = 8.0
LOCK_SECONDS = 3.0  # maximum time that a statement waits for a row lock (lock_timeout)
RECORD_SECONDS = 3.2  # part of CAPTURE_SECONDS that is reserved to record the outcome
JOIN_SECONDS = 2.0  # maximum time that a call waits for another capture of the same checkout
ASK_AGAIN_SECONDS = 0.3  # pause between two look-ups of a capture that was accepted but is not confirmed yet
Kind: TypeAlias = Operation.Kind
State: TypeAlias = Operation.State


class NotCapturable(StateConflict):
    """Only a held checkout can be captured, and only until its deadline (rule capture.refused)."""


class PartialCaptureNotSupported(Exception):
    """Only the full amount can be captured (rule capture.full)."""

    def __init__(self, amount: int) -> None:
        super().__init__(f"Only the full amount of {amount} can be captured.")
        self.amount = amount


class ProviderRefused(Exception):
    """The provider refused the capture, and the status has not changed.

    `reason` is the provider's reason code, or "". Rule capture.provider_refused.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class OutcomeUnknown(Exception):
    """The outcome was not known in time. The pump finds out the outcome later. It is safe to repeat the call."""


def capture(merchant: Merchant, checkout_uuid: UUID, *, amount: int | None = None, cause: Cause) -> Checkout:
    """Take the held money: `authorized` becomes `captured`. A captured checkout is returned unchanged.

    The deadline is compared with the time of the database, which is read while the row is locked. If another
    capture of the checkout is open, the call waits up to two seconds for it. The call ends within eight
    seconds. Raises Checkout.DoesNotExist, NotCapturable, PartialCaptureNotSupported, OperationInProgress,
    ProviderRefused, OutcomeUnknown, operator_stops.MerchantSuspended, operator_stops.AllStopped, bulkhead.Busy.
    Rules capture.takes, capture.repeat, capture.deadline, capture.join, capture.eight_seconds, capture.one.
    """
    deadline = Deadline.after(CAPTURE_SECONDS)

    def begin(slot: Slot) -> tuple[Checkout, Operation | None]:
        return _begin_capture(merchant, checkout_uuid, amount, cause, slot)

    with bulkheads.CAPTURES.slot() as slot:
        while True:
            try:
                # This step gets an earlier deadline, so that the last phase still has time to wait for two row locks.
                checkout, operation = slot.begin(begin, deadline.sooner(2 * LOCK_SECONDS))
                break
            except _CaptureInProgress as joined:
                slot.give_back()
                _wait_until_ended(joined.operation_uuid, deadline.sooner(CAPTURE_SECONDS - JOIN_SECONDS))
        if operation is None:
            return checkout
        outcome = _send_capture(operation, deadline.sooner(RECORD_SECONDS))
        recorded = outcomes.record_outcome(checkout.pk, operation.pk, outcome, lease=operation.lease_token)
    return _require_captured(recorded)


def _require_captured(recorded: outcomes.RecordedOutcome) -> Checkout:
    """Return the checkout if it is captured now. Otherwise, raise ProviderRefused, NotCapturable or OutcomeUnknown."""
    if recorded.checkout.status == Status.CAPTURED:
        return recorded.checkout
    if recorded.is_kept and recorded.operation.state in (State.FAILED, State.DECLINED):
        raise ProviderRefused(recorded.operation.reason)
    if recorded.checkout.status != Status.AUTHORIZED:
        raise NotCapturable(recorded.checkout.status)
    # Another process might have recorded a refusal. Even then the outcome is unknown, because the capture can
    # be sent again under a new key.
    raise OutcomeUnknown


def _send_capture(operation: Operation, deadline: Deadline) -> Outcome:
    """Send a capture and return its outcome.

    If the response is lost, or if it says that the payment was already captured, the capture is looked up once. A
    capture that was accepted but is not confirmed yet is looked up repeatedly, until it is confirmed or the deadline is
    reached. Rules doubt.pending, capture.in_time.
    """
    outcome = operations.perform(operation, deadline=deadline)
    if operations.is_captured_already(outcome):
        outcome = Outcome(Verdict.UNKNOWN, reason=outcome.reason)
    if outcome.verdict == Verdict.UNKNOWN:
        outcome = _look_up_outcome(operation, outcome, deadline)
    while outcome.verdict == Verdict.PENDING and deadline.remaining() > ASK_AGAIN_SECONDS:
        time.sleep(ASK_AGAIN_SECONDS)
        outcome = _look_up_outcome(operation, outcome, deadline)
    return outcome


def _look_up_outcome(capture: Operation, earlier: Outcome, deadline: Deadline) -> Outcome:
    """Look up the capture. Return its outcome if this is clear, otherwise the earlier outcome."""
    latest = operations.look_up_capture(capture, deadline=deadline)
    is_clear = latest.verdict not in (Verdict.UNKNOWN, Verdict.NOT_FOUND)
    return latest if is_clear else earlier


class _CaptureInProgress(Exception):
    """Another capture of the same checkout is open."""

    def __init__(self, operation_uuid: UUID) -> None:
        self.operation_uuid = operation_uuid


def _begin_capture(
    merchant: Merchant, checkout_uuid: UUID, amount: int | None, cause: Cause, slot: Slot
) -> tuple[Checkout, Operation | None]:
    """Commit the intent to capture. Return the checkout and the operation.

    The operation is None if the checkout is already captured.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid, merchant)
        now = checkout.locked_at
        if amount is not None and amount != checkout.amount:
            raise PartialCaptureNotSupported(checkout.amount)
        if checkout.status == Status.CAPTURED:
            return checkout, None
        # This call can give up a card whose bank has not answered, so the live payment must be read after it.
        expiry.expire_if_due(checkout, now)
        live = open_operations.live_payment(checkout.pk)
        if live is not None and live.open_uuid is not None and live.open_kind == Kind.CAPTURE:
            raise _CaptureInProgress(live.open_uuid)
        if live is not None and live.open_kind and checkout.status in (Status.CREATED, Status.AUTHORIZED):
            raise OperationInProgress
        if checkout.status == Status.AUTHORIZED and live is not None:
            operator_stops.check(merchant)
            slot.take()
            return checkout, operations.begin(live.payment, Kind.CAPTURE, now=now, cause=cause)
    raise NotCapturable(checkout.status)


def _wait_until_ended(operation_uuid: UUID, patience: Deadline) -> None:
    """Wait until the operation has ended. Raises OperationInProgress if the wait takes too long.

    In each process, only one call can wait for an operation. For any other call, the error is raised at once.
    Rule capture.join.
    """
    with bulkheads.CAPTURE_WAITERS.place(operation_uuid) as is_ours:
        while is_ours and patience.remaining():
            connection_release.release()
            time.sleep(0.1)
            if not Operation.objects.filter(pk=operation_uuid, ended_at=None).exists():
                return
    raise OperationInProgress
