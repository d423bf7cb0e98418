"""Refunds whole orders. The service accepts a refund at once, and the provider settles it later."""

from typing import Any, NamedTuple
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet

from checkout import expiry, settling
from checkout.models import Checkout, Refund
from checkout.states import OperationInProgress, StateConflict, Status
from config.lib.prepared import Prepared
from payments import disputes, open_operations
from payments.cause import PUMP, Cause
from payments.models import Dispute, Merchant


class NotRefundable(StateConflict):
    """The checkout cannot be refunded (rules refund.refused, dispute.no_refund).

    Either it is not captured, or a dispute is open, or lost disputes took the whole amount.
    """

    def __init__(self, status: str, dispute: Dispute | None = None) -> None:
        super().__init__(status)
        self.dispute = dispute


class RefundRefConflict(Exception):
    """The merchant has already used this reference for another checkout (rule refund.ref_conflict)."""


class PartialRefundNotSupported(Exception):
    """Only the full amount can be refunded (rule refund.full)."""

    def __init__(self, amount: int) -> None:
        super().__init__(f"Only the full amount of {amount} can be refunded.")
        self.amount = amount


class AcceptedRefund(NamedTuple):
    """The refund with the requested reference. `is_new` is true if this call has created it."""

    refund: Refund
    is_new: bool


def accept(
    merchant: Merchant,
    checkout_uuid: UUID,
    *,
    ref: str,
    reason: str | None = None,
    amount: int | None = None,
    cause: Cause,
) -> AcceptedRefund:
    """Accept a refund of the whole order: `captured` becomes `refunding`.

    `ref` is the merchant's reference. If the checkout already has a refund with this reference, that refund is
    returned. Raises Checkout.DoesNotExist, NotRefundable, RefundRefConflict, PartialRefundNotSupported,
    OperationInProgress. Rules refund.accepted, refund.ref, refund.refused, refund.one.
    """
    try:
        with transaction.atomic(durable=True):
            checkout = Checkout.objects.locked(checkout_uuid, merchant)
            if amount is not None and amount != checkout.amount:
                raise PartialRefundNotSupported(checkout.amount)
            if existing := _existing_refund(checkout, ref):
                return AcceptedRefund(existing, is_new=False)
            if not expiry.expire_if_due(checkout, checkout.locked_at):
                _check_refundable(checkout)
                return AcceptedRefund(_begin_refund(checkout, ref, reason, cause), is_new=True)
    except IntegrityError as error:
        if "a_refund_ref_is_used_once_per_merchant" in str(error):
            raise RefundRefConflict from error  # a call for another checkout used `ref` at the same time
        raise
    # The deadline of the checkout had passed, so it has just lapsed or expired.
    raise NotRefundable(checkout.status)


def _existing_refund(checkout: Checkout, ref: str) -> Refund | None:
    """Return the checkout's refund with this reference, or None.

    Raises RefundRefConflict if the refund belongs to another checkout.
    """
    refund = _REFUND_BY_REF.first(checkout.merchant_id, ref) or _adopt_restored(checkout, ref)
    if refund is not None and refund.checkout_id != checkout.pk:
        raise RefundRefConflict
    return refund


_REFUND_BY_REF = Prepared(
    lambda merchant, ref: Refund.objects.filter(merchant=merchant, merchant_refund_ref=ref), UUID, str
)


# Temporary reference for a refund if the merchant's reference was lost in a restore. It contains the refund's id, so
# it is never equal to a reference that a merchant has chosen.
RESTORED = "restored_{}"


def restore_refund(checkout: Checkout, refund_uuid: UUID) -> bool:
    """Recreate a refund that a restore of the database has lost, with the id that the provider has stored.

    Returns False if the order cannot have had this refund. If another refund is pending in the restored database, it
    must have failed before this refund began, so it is recorded as failed. The refund gets its reference when the
    merchant repeats the call. This function does not plan an operation, because the repair settles the order after it
    has found all lost operations. Must be called with the checkout locked.
    """
    found = Refund.objects.filter(pk=refund_uuid).first()
    if found is not None:
        return found.checkout_id == checkout.pk
    if checkout.status not in (Status.CAPTURED, Status.REFUNDING):
        return False
    pending = checkout.refunds.filter(status=Refund.Status.PENDING)
    pending.update(status=Refund.Status.FAILED, failure_reason="refused")
    _write_refund(checkout, "", None, PUMP, refund_uuid)
    return True


def _adopt_restored(checkout: Checkout, ref: str) -> Refund | None:
    """Return a restored refund, and give it the reference that its merchant has sent in a repeated call.

    Returns None if the checkout has no restored refund without a reference. Rule restore.refund.
    """
    if checkout.status not in (Status.REFUNDING, Status.REFUNDED):
        return None
    for refund in checkout.refunds.all():
        if refund.merchant_refund_ref == RESTORED.format(refund.pk):
            refund.merchant_refund_ref = ref
            refund.save(update_fields=["merchant_refund_ref"])
            return refund
    return None


def _begin_refund(checkout: Checkout, ref: str, reason: str | None, cause: Cause) -> Refund:
    refund = _write_refund(checkout, ref, reason, cause)
    settling.settle(checkout, checkout.locked_at, cause)
    return refund


def _write_refund(
    checkout: Checkout, ref: str, reason: str | None, cause: Cause, refund_uuid: UUID | None = None
) -> Refund:
    now = checkout.locked_at
    refund = Refund(
        **({"id": refund_uuid} if refund_uuid else {}),
        merchant_id=checkout.merchant_id,
        checkout=checkout,
        reason=reason,
        amount=checkout.amount,
        created_at=now,
    )
    refund.merchant_refund_ref = ref or RESTORED.format(refund.pk)
    refund.save(force_insert=True)
    # Only a restored refund can begin while an earlier refund is pending.
    if checkout.status != Status.REFUNDING:
        checkout.move(Status.REFUNDING, cause, now)
    return refund


def with_failed(rows: QuerySet[Any], *, checkout: str = "pk") -> QuerySet[Any, Any]:
    """Add `has_failed_refund` to each row: whether a refund of the checkout has failed.

    `checkout` is the field that contains the checkout's id.
    """
    annotated: QuerySet[Any, Any] = rows.annotate(
        has_failed_refund=Exists(_failed_refunds(OuterRef(checkout)))
    )
    return annotated


def has_failed(checkout: Checkout) -> bool:
    """Return whether the last refund of the checkout has failed, so that the merchant has the money again.

    If the row comes from a query with `with_failed`, there is no further query.
    """
    if checkout.status != Status.CAPTURED:
        return False
    annotated: bool | None = getattr(checkout, "has_failed_refund", None)
    return _failed_refunds(checkout.pk).exists() if annotated is None else annotated


def _failed_refunds(checkout_uuid: UUID | OuterRef) -> QuerySet[Refund]:
    return Refund.objects.filter(checkout=checkout_uuid, status=Refund.Status.FAILED)


def _check_refundable(checkout: Checkout) -> None:
    """Raise NotRefundable or OperationInProgress unless a refund can begin now.

    The end of an authorization does not make a checkout refundable, so an unpaid checkout is never asked to wait.
    Rule refund.open_operation.
    """
    undecided = checkout.status in (Status.AUTHORIZED, Status.CAPTURED)
    live: Any = _LIVE_PAYMENT.first(checkout.pk) if undecided else None
    if live is not None and live.open_kind:
        raise OperationInProgress
    if live is None or checkout.status != Status.CAPTURED:
        raise NotRefundable(checkout.status)
    dispute = dispute_blocking_refund(checkout, is_locked=True) if live.is_disputed else None
    if dispute is not None:
        raise NotRefundable(checkout.status, dispute)


def dispute_blocking_refund(checkout: Checkout, *, is_locked: bool = False) -> Dispute | None:
    """Return the dispute that prevents a refund, or None.

    An open dispute prevents a refund. A lost dispute prevents it only if no card still bears an amount.
    """
    dispute = disputes.blocking_dispute(checkout.pk)
    if dispute is None or dispute.status == Dispute.Status.OPEN:
        return dispute
    return None if settling.has_unrefunded_amount(checkout, is_locked=is_locked) else dispute


_LIVE_PAYMENT = Prepared(
    lambda subject: disputes.with_disputed(
        open_operations.query_live_payment(subject), checkout="checkout_uuid"
    ),
    UUID,
)
