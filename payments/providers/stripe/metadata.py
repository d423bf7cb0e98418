"""Our ids in the metadata of Stripe's objects. After a restore, lost rows are written again with these ids."""

from typing import Any
from uuid import UUID

from payments.models import Operation, Payment

PAYMENT, MERCHANT, SUBJECT = "payment", "merchant", "subject"  # keys in the metadata of a PaymentIntent
OPERATION, REFUND, SHARE = "operation", "refund", "share"  # keys in the metadata of a refund


def describe_payment(payment: Payment) -> dict[str, str]:
    """Return the metadata for the PaymentIntent of a payment."""
    return _write_ids({PAYMENT: payment.pk, MERCHANT: payment.merchant_id, SUBJECT: payment.subject})


def describe_refund(operation: Operation) -> dict[str, str]:
    """Return the metadata for a refund: the ids of our operation and of its refund or share."""
    names = {OPERATION: operation.pk, REFUND: operation.refund_uuid, SHARE: operation.share_uuid}
    return _write_ids(names)


def read_id(stripe_object: Any, name: str) -> UUID | None:
    """Return the id with this name in the metadata of an object, or None if there is no valid id."""
    values = stripe_object.metadata
    try:
        return UUID(values[name]) if values and name in values else None
    except ValueError:
        return None


def _write_ids(ids: dict[str, UUID | None]) -> dict[str, str]:
    return {name: str(value) for name, value in ids.items() if value is not None}
