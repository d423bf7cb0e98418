"""Cancels a held or unpaid checkout for its merchant, without waiting for the provider."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from checkout import expiry, pledges
from checkout.models import Checkout
from checkout.states import OperationInProgress, StateConflict, Status, VoidReason
from payments import open_operations
from payments.cause import Cause
from payments.models import Merchant


class NotCancellable(StateConflict):
    """The checkout cannot be cancelled, because it has expired or is already paid (rule cancel.refused)."""


def cancel(merchant: Merchant, checkout_uuid: UUID, *, note: str = "", cause: Cause) -> Checkout:
    """Void a held or unpaid checkout. If it is held, plan the release of the hold.

    If the checkout is already voided, it is returned unchanged. Raises Checkout.DoesNotExist, NotCancellable,
    OperationInProgress. Rules cancel.held, cancel.unpaid, cancel.repeat, cancel.refused, cancel.open_operation.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid, merchant)
        now = checkout.locked_at
        expiry.expire_if_due(checkout, now)
        can_end = checkout.status in (Status.CREATED, Status.AUTHORIZED)
        if can_end and open_operations.open_operation(checkout.pk) is not None:
            raise OperationInProgress
        if can_end:
            _void_checkout(checkout, note, now, cause)
    if checkout.status != Status.VOIDED:
        raise NotCancellable(checkout.status)
    return checkout


def _void_checkout(checkout: Checkout, note: str, now: datetime, cause: Cause) -> None:
    """Void a held or unpaid checkout at the merchant's request. Must be called with the checkout locked."""
    was_held = checkout.status == Status.AUTHORIZED
    reason = VoidReason.MERCHANT_CANCEL
    checkout.move(Status.VOIDED, cause, now, voided_at=now, void_reason=reason, cancel_note=note)
    pledges.end_with_orders([checkout], now)
    if was_held:
        expiry.release_holds([checkout], now, cause)
