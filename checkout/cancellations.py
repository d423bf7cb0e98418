"""Cancelling: the merchant releases a hold, or ends an unpaid checkout. Nobody outside is waited for."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from checkout import expiry, share_outcomes
from checkout.models import Checkout
from checkout.states import OperationInProgress, StateConflict, Status, VoidReason
from payments import open_operations
from payments.cause import Cause
from payments.models import Merchant


class NotCancellable(StateConflict):
    """A paid checkout is refunded instead; an expired one has ended (rule cancel.refused)."""


def cancel(merchant: Merchant, checkout_uuid: UUID, *, note: str = "", cause: Cause) -> Checkout:
    """Release the hold, or end an unpaid checkout: it becomes `voided`; a voided one is returned as it is.

    Raises Checkout.DoesNotExist, NotCancellable, OperationInProgress. Rules cancel.held, cancel.unpaid, cancel.repeat,
    cancel.refused.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid, merchant)
        now = checkout.locked_at
        expiry.expire_if_due(checkout, now)
        can_end = checkout.status in (Status.CREATED, Status.AUTHORIZED)  # else no waiting helps
        if can_end and open_operations.open_operation(checkout.pk) is not None:
            raise OperationInProgress
        if can_end:
            _void(checkout, note, now, cause)
    if checkout.status != Status.VOIDED:
        raise NotCancellable(checkout.status)
    return checkout


def _void(checkout: Checkout, note: str, now: datetime, cause: Cause) -> None:
    """Void a locked checkout, held or unpaid, for its merchant."""
    was_held = checkout.status == Status.AUTHORIZED
    reason = VoidReason.MERCHANT_CANCEL
    checkout.move(Status.VOIDED, cause, now, voided_at=now, void_reason=reason, cancel_note=note)
    share_outcomes.end_drafts([checkout], now)
    if was_held:
        expiry.release([checkout], now, cause)
