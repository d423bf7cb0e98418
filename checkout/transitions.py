"""The moves of a checkout. Each verb locks, checks, changes and emits in one transaction; what needs the
provider takes three beats: commit the intent, call with no transaction open, lock again and settle."""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from django.db import transaction

from checkout import events, settlement, states
from checkout.models import Checkout, Customer
from checkout.states import Status, VoidReason
from config.lib import clock, wakeup
from payments import operations
from payments.cause import PUMP, Cause
from payments.models import Merchant, Operation, Payment
from payments.provider import Verdict

FINISH_OPERATIONS = "checkout.tasks.finish_operations"
JOIN_SECONDS = 2.0
Kind: TypeAlias = Operation.Kind
State: TypeAlias = Operation.State


class StateConflict(Exception):
    """The checkout's state does not allow the verb."""

    def __init__(self, status: str) -> None:
        super().__init__(f"The checkout is {status}.")
        self.status = status
        self.actions = states.actions(status)


class NotCapturable(StateConflict):
    """Only a held checkout can be captured, until its deadline."""


class NotCancellable(StateConflict):
    """What is paid is refunded instead; what has expired has ended."""


class NotPayable(StateConflict):
    """It is paid, expired or cancelled already."""


class OperationInProgress(Exception):
    """A card operation is open on the checkout."""


class MerchantSuspended(Exception):
    """The merchant may neither create nor be paid nor capture."""


class PartialCaptureNotSupported(Exception):
    """Only the full amount can be captured."""

    def __init__(self, amount: int) -> None:
        super().__init__(f"Only the full amount of {amount} can be captured.")
        self.amount = amount


class ProviderRefused(Exception):
    """The provider clearly said no; nothing has changed."""


class OutcomeUnknown(Exception):
    """The provider gave no clear answer in time. The pump finds out; asking again is safe."""


@dataclass(frozen=True)
class Paid:
    """What became of an attempt to pay."""

    verdict: Verdict
    reason: str = ""


def authorize(checkout_uuid: UUID, *, card_token: str, lead: Customer | None, cause: Cause) -> Paid:
    """Hold the checkout's amount on the card behind the token: `created` becomes `authorized`.

    Raises NotPayable, OperationInProgress, MerchantSuspended. SPEC.md 3.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        now = clock.now()
        payable = _check_payable(checkout, now)
        if payable:
            payment = _new_payment(checkout, card_token)
            operation = operations.begin(payment, Kind.AUTHORIZE, now=now, cause=cause)
            checkout.lead = lead
            checkout.save(update_fields=["lead", "updated_at"])
    if not payable:
        raise NotPayable(checkout.status)
    outcome = operations.perform(operation, card_token=card_token)
    settled = settlement.settle(operation, outcome).operation
    if settled.state == State.SUCCEEDED:
        return Paid(Verdict.SUCCEEDED)
    return Paid(outcome.verdict, settled.reason)


def _check_payable(checkout: Checkout, now: datetime) -> bool:
    """Whether it can be paid now. Finds a passed deadline first."""
    keep_deadlines(checkout, now)
    if checkout.status != Status.CREATED:
        return False
    if checkout.merchant.suspended_at is not None:
        raise MerchantSuspended
    if operations.open_operation(checkout.pk) is not None:
        raise OperationInProgress
    return True


def _new_payment(checkout: Checkout, card_token: str) -> Payment:
    return Payment.objects.create(
        merchant_id=checkout.merchant_id,
        subject=checkout.pk,
        checkout_uuid=checkout.pk,
        amount=checkout.amount,
        currency=checkout.currency,
        card_token=card_token,
    )


def capture(merchant: Merchant, checkout_uuid: UUID, *, amount: int | None = None, cause: Cause) -> Checkout:
    """Take the held money: `authorized` becomes `captured`; a captured checkout is returned as it is.

    The deadline is judged by the database's clock under the row's lock. A capture that finds another one
    open waits two seconds for it. Raises Checkout.DoesNotExist, NotCapturable, PartialCaptureNotSupported,
    OperationInProgress, MerchantSuspended, ProviderRefused, OutcomeUnknown. SPEC.md 3, 4.
    """
    patience = time.monotonic() + JOIN_SECONDS
    while True:
        try:
            checkout, operation = _begin_capture(merchant, checkout_uuid, amount, cause)
            break
        except _CaptureOpen as joined:
            _wait_for(joined.operation_uuid, patience)
    if operation is None:
        return checkout
    outcome = operations.perform(operation)
    settled = settlement.settle(operation, outcome)
    if settled.operation.state == State.SUCCEEDED:
        return settled.checkout
    if settled.operation.state == State.FAILED:
        raise ProviderRefused
    raise OutcomeUnknown


class _CaptureOpen(Exception):
    """Another capture of the same checkout is on its way."""

    def __init__(self, operation_uuid: UUID) -> None:
        self.operation_uuid = operation_uuid


def _begin_capture(
    merchant: Merchant, checkout_uuid: UUID, amount: int | None, cause: Cause
) -> tuple[Checkout, Operation | None]:
    """Commit the intent. Returns no operation when the checkout is captured already."""
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid, merchant)
        now = clock.now()
        if amount is not None and amount != checkout.amount:
            raise PartialCaptureNotSupported(checkout.amount)
        if checkout.status == Status.CAPTURED:
            return checkout, None
        _check_no_open_operation(checkout, joining=Kind.CAPTURE)
        keep_deadlines(checkout, now)
        if checkout.status == Status.AUTHORIZED and checkout.payment is not None:
            if checkout.merchant.suspended_at is not None:
                raise MerchantSuspended
            return checkout, operations.begin(checkout.payment, Kind.CAPTURE, now=now, cause=cause)
    raise NotCapturable(checkout.status)


def _check_no_open_operation(checkout: Checkout, *, joining: Kind | None = None) -> None:
    found = operations.open_operation(checkout.pk)
    if found is None or (checkout.status == Status.VOIDED and found.kind == Kind.VOID):
        return
    if joining is not None and found.kind == joining:
        raise _CaptureOpen(found.pk)
    raise OperationInProgress


def _wait_for(operation_uuid: UUID, patience: float) -> None:
    while time.monotonic() < patience:
        time.sleep(0.1)
        if not Operation.objects.filter(pk=operation_uuid, ended_at=None).exists():
            return
    raise OperationInProgress


def cancel(merchant: Merchant, checkout_uuid: UUID, *, note: str = "", cause: Cause) -> Checkout:
    """Release the hold, or end an unpaid checkout: it becomes `voided`; a voided one is returned as it is.

    Raises Checkout.DoesNotExist, NotCancellable, OperationInProgress. SPEC.md 3.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid, merchant)
        now = clock.now()
        _check_no_open_operation(checkout)
        keep_deadlines(checkout, now)
        if checkout.status in (Status.CREATED, Status.AUTHORIZED):
            checkout.cancel_note = note
            checkout.save(update_fields=["cancel_note"])
            _void(checkout, VoidReason.MERCHANT_CANCEL, at=now, cause=cause)
    if checkout.status != Status.VOIDED:
        raise NotCancellable(checkout.status)
    return checkout


def keep_deadlines(checkout: Checkout, now: datetime) -> bool:
    """Let a locked checkout lapse or expire if its time has passed and no card operation is open.

    Whoever looks at a checkout first calls this. Returns whether it moved.
    """
    late = checkout.has_lapsed(now) or checkout.has_expired(now)
    if not late or operations.open_operation(checkout.pk) is not None:
        return False
    if checkout.status == Status.AUTHORIZED:
        _void(checkout, VoidReason.AUTH_EXPIRED, at=checkout.capture_before or now, cause=PUMP)
    else:
        checkout.move(Status.EXPIRED, PUMP, now, expired_at=checkout.payable_until)
    return True


def keep_deadlines_of(checkout_uuid: UUID) -> None:
    """As `keep_deadlines`, for a checkout that is not locked yet."""
    with transaction.atomic(durable=True):
        keep_deadlines(Checkout.objects.locked(checkout_uuid), clock.now())


def _void(checkout: Checkout, reason: VoidReason, *, at: datetime, cause: Cause) -> None:
    """End it. What was held is released by the pump, repeated until the provider confirms."""
    held = checkout.status == Status.AUTHORIZED
    checkout.move(Status.VOIDED, cause, at, voided_at=at, void_reason=reason)
    if held and checkout.payment is not None:
        operations.plan(checkout.payment, Kind.VOID, now=at, cause=cause)
        wakeup.after_commit(FINISH_OPERATIONS)
        events.voided(checkout, at)
