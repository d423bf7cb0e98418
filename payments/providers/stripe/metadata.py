"""Our ids in the metadata of Stripe's objects. After a restore, lost rows are rebuilt from them."""

from typing import Any
from uuid import UUID

from payments.models import Operation, Payment

PAYMENT, MERCHANT, SUBJECT = "payment", "merchant", "subject"  # keys in a PaymentIntent's metadata
OPERATION, REFUND, SHARE = "operation", "refund", "share"  # keys in a refund's metadata


def describe_payment(payment: Payment) -> dict[str, str]:
    """Return the metadata of a payment's PaymentIntent."""
    return _write_ids({PAYMENT: payment.pk, MERCHANT: payment.merchant_id, SUBJECT: payment.subject})


def describe_refund(operation: Operation) -> dict[str, str]:
    """Return the metadata of a refund: the ids of our operation and of the refund or share that it is for."""
    names = {OPERATION: operation.pk, REFUND: operation.refund_uuid, SHARE: operation.share_uuid}
    return _write_ids(names)


def read_id(stripe_object: Any, name: str) -> UUID | None:
    """Return the id under a name in an object's metadata, or None if there is no valid one."""
    values = stripe_object.metadata
    try:
        return UUID(values[name]) if values and name in values else None
    except ValueError:
        return None


def _write_ids(ids: dict[str, UUID | None]) -> dict[str, str]:
    return {name: str(value) for name, value in ids.items() if value is not None}
