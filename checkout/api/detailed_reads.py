"""Functions that read a checkout with all the fields that the API shows. Each function runs one SQL statement."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Field, Func

from checkout import current_checkouts
from checkout.api import statements
from checkout.models import Checkout, CheckoutQuerySet
from config.lib.prepared import Prepared
from payments import open_operations
from payments.models import Merchant

_REFUND_COLUMNS = (
    "id",
    "merchant_refund_ref",
    "reason",
    "status",
    "amount",
    "created_at",
    "settled_at",
    "failure_reason",
)
_DISPUTE_COLUMNS = ("id", "amount", "reason", "status", "opened_at", "respond_by")


def _json_list(
    table: str, columns: Sequence[str], order: str, *, of: str = "checkout_id", condition: str = "true"
) -> Func:
    """Return an SQL expression for the first hundred rows that a table has about a checkout, as a JSON list.

    The expression is plain SQL. If the ORM built the query again for each read, a read would take twice as long. Rule
    read.refunds.
    """
    template = statements.json_list(table, columns, order, of=of, condition=condition)
    return Func(template=template, output_field=Field())


_PARTS = {
    "refund_parts": _json_list("checkout_refund", _REFUND_COLUMNS, "created_at DESC"),
    # A replaced share is no longer part of the split.
    "share_parts": _json_list(
        "checkout_paymentrequest", ("amount", "status"), "id", condition="replaced_at IS NULL"
    ),
    "dispute_parts": _json_list("payments_dispute", _DISPUTE_COLUMNS, "created_at", of="checkout_uuid"),
    "pending": open_operations.pending_operation_of("pk"),
}


def with_parts(rows: CheckoutQuerySet) -> CheckoutQuerySet:
    """Add items, refunds, shares, disputes and the pending operation to each row, without a further query."""
    return rows.with_bill().annotate(**_PARTS)


def read_checkout(merchant: Merchant, checkout_uuid: UUID) -> Any:
    """Return the current state of a checkout with all its parts, for CheckoutOut.

    Raises Checkout.DoesNotExist, also if the checkout belongs to another merchant. Rule api.strangers.
    """
    return current_checkouts.read_one(_DETAILED_CHECKOUT.get, checkout_uuid, merchant.pk)


_DETAILED_CHECKOUT = Prepared(
    lambda pk, merchant: current_checkouts.with_read_at(
        with_parts(Checkout.objects.filter(pk=pk, merchant=merchant))
    ),
    UUID,
    UUID,
)


def read_without_expiring(merchant: Merchant, checkout_uuid: UUID) -> Any:
    """Return a checkout as `read_checkout` does, but do not end a checkout whose deadline has passed.

    This function does not take a lock. Raises Checkout.DoesNotExist.
    """
    return _DETAILED_CHECKOUT.get(checkout_uuid, merchant.pk)


def pending_kind(checkout: Any) -> str | None:
    """Return the kind of a checkout's pending operation, or None. The row must come from `with_parts`."""
    return str(checkout.pending[0]) if checkout.pending else None


def changed_at(checkout: Any) -> datetime:
    """Return the time of a checkout's last change. The row must come from `with_parts`.

    The start of an authorization or a capture also counts as a change, although it is recorded only in the
    operation's row.
    """
    written: datetime = checkout.updated_at
    if pending_kind(checkout) not in open_operations.KINDS_NOT_ON_ORDER_ROW:
        return written
    return max(written, datetime.fromisoformat(checkout.pending[1]))
