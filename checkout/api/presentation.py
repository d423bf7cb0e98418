"""Answers of the API as plain dictionaries, with the fields that each status has (rule read.fields)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Field, Func

from checkout import reading, refunds, states
from checkout.models import Checkout, CheckoutQuerySet, Refund
from checkout.states import Status
from config.lib import clock
from config.lib.prepared import Prepared
from payments import open_operations
from payments.models import Dispute, Merchant

_REFUND = (
    "id",
    "merchant_refund_ref",
    "reason",
    "status",
    "amount",
    "created_at",
    "settled_at",
    "failure_reason",
)


_DISPUTE = ("id", "amount", "reason", "status", "opened_at", "respond_by")

_LIST = """(
    SELECT coalesce(json_agg(json_build_object({fields}) ORDER BY {order}), '[]')
    FROM (SELECT * FROM {table} WHERE {of} = checkout_checkout.id ORDER BY {order} LIMIT 100) of_checkout)"""


def _list_of(table: str, columns: Sequence[str], order: str, *, of: str = "checkout_id") -> Func:
    """Return the first hundred rows of a checkout's child table as one JSON list.

    The limit exists because a checkout can have any number of refunds. The query is plain SQL: the ORM would
    build it again for each read, which costs as much as the rest of the read. Rule read.refunds.
    """
    fields = ", ".join(f"'{column}', {column}" for column in columns)
    template = _LIST.replace("{fields}", fields).replace("{table}", table).replace("{order}", order)
    template = template.replace("{of}", of)
    return Func(template=template, output_field=Field())


_PARTS = {
    "refund_parts": _list_of("checkout_refund", _REFUND, "created_at DESC"),
    "share_parts": _list_of("checkout_paymentrequest", ("amount", "status"), "id"),
    "dispute_parts": _list_of("payments_dispute", _DISPUTE, "created_at", of="checkout_uuid"),
    "pending": open_operations.pending_on("pk"),
}


def with_parts(rows: CheckoutQuerySet) -> CheckoutQuerySet:
    """Add items, refunds, shares, disputes and the pending operation to each row, in the same statement."""
    return rows.with_bill().annotate(**_PARTS)


def read(merchant: Merchant, checkout_uuid: UUID) -> dict[str, Any]:
    """Return the whole checkout as it is now.

    Raises Checkout.DoesNotExist, also for another merchant's checkout. Rule api.strangers.
    """
    return whole(reading.one(_ONE, checkout_uuid, merchant.pk))


_ONE = Prepared(
    lambda pk, merchant: reading.with_read_at(with_parts(Checkout.objects.filter(pk=pk, merchant=merchant))),
    UUID,
    UUID,
)


def standing(merchant: Merchant, checkout_uuid: UUID) -> dict[str, Any]:
    """Return the status and the allowed actions of a checkout without a lock, even if it is late.

    Raises Checkout.DoesNotExist.
    """
    shown = whole(_ONE.get(checkout_uuid, merchant.pk))
    return {name: shown[name] for name in ("status", "available_actions")}


def created(checkout: Checkout) -> dict[str, Any]:
    """Return the answer to a creation (rule create.answer)."""
    return {
        "checkout_uuid": str(checkout.pk),
        "status": checkout.status,
        "checkout_url": checkout.url,
        "expires_at": clock.iso(checkout.expires_at),
        "payable_until": clock.iso(checkout.payable_until),
    }


def whole(checkout: Any) -> dict[str, Any]:
    """Return the fields of a checkout that was read `with_parts` and `with_read_at`.

    They depend on its status (rule read.fields).
    """
    shown: dict[str, Any] = {
        "checkout_uuid": str(checkout.pk),
        "merchant_order_id": checkout.merchant_order_id,
        "status": checkout.status,
        "amount": checkout.amount,
        "currency": checkout.currency,
        "checkout_url": checkout.url,
        "expires_at": clock.iso(checkout.expires_at),
        "created_at": clock.iso(checkout.created_at),
        "updated_at": clock.iso(changed_at(checkout)),
        "metadata": checkout.metadata or {},
        "items": [item._asdict() for item in checkout.bill],
        "available_actions": _actions(checkout),
    }
    shown |= _of_status(checkout)
    if checkout.pending:
        shown["pending_operation"] = _kind(checkout)
    if checkout.share_parts:
        shown["shares"] = _shares(checkout.share_parts)
    if checkout.dispute_parts:
        shown["disputes"] = [
            _part(part, "dispute_uuid", "opened_at", "respond_by") for part in checkout.dispute_parts
        ]
    return shown


def _of_status(checkout: Any) -> dict[str, Any]:
    """Return the fields that only some statuses have, in the order of a checkout's life."""
    shown: dict[str, Any] = {}
    if checkout.status in (Status.CREATED, Status.EXPIRED):
        shown["payable_until"] = clock.iso(checkout.payable_until)
    if checkout.status == Status.EXPIRED:
        shown["expired_at"] = clock.iso(checkout.expired_at)
    if checkout.authorized_at is not None:
        shown["authorized_at"] = clock.iso(checkout.authorized_at)
        shown["capture_before"] = clock.iso(checkout.capture_before)
    if checkout.status == Status.VOIDED:
        shown["voided_at"] = clock.iso(checkout.voided_at)
        shown["void_reason"] = checkout.void_reason
    return shown | (_money(checkout) if checkout.status in states.PAID else {})


def _actions(checkout: Any) -> list[str]:
    is_standing = any(part["status"] in Dispute.STANDING for part in checkout.dispute_parts)
    is_disputed = is_standing and refunds.obstacle(checkout) is not None
    return reading.actions(checkout, open_kind=_kind(checkout), is_disputed=is_disputed)


def _kind(checkout: Any) -> str | None:
    """Return the kind of the pending operation, or None if no operation is pending."""
    return str(checkout.pending[0]) if checkout.pending else None


def changed_at(checkout: Any) -> datetime:
    """Return when a checkout that was read `with_parts` last changed.

    The start of an operation is a change too, but the order's row is not written for it.
    """
    written: datetime = checkout.updated_at
    if _kind(checkout) not in open_operations.UNWRITTEN:
        return written
    return max(written, datetime.fromisoformat(checkout.pending[1]))


def _money(checkout: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "captured_at": clock.iso(checkout.captured_at),
        "refunded_amount": checkout.refunded_amount,
        "last_refund_at": clock.iso(checkout.last_refund_at),
        "merchant_processor_fee": 0,
        "merchant_service_fee": 0,
    }
    if checkout.refund_parts:
        shown["refunds"] = [
            _part(part, "refund_uuid", "created_at", "settled_at") for part in checkout.refund_parts
        ]
    return shown


def _part(part: dict[str, Any], key: str, *times: str) -> dict[str, Any]:
    """Return a row from PostgreSQL's JSON, with its id as `key` and its times in our format."""
    facts = {name: _reread(value) if name in times else value for name, value in part.items()}
    return {key: facts.pop("id")} | facts


def _reread(text: str | None) -> str | None:
    return clock.iso(datetime.fromisoformat(text)) if text else None


def dispute(row: Dispute) -> dict[str, Any]:
    """Return the current fields of a dispute."""
    return {
        "dispute_uuid": str(row.pk),
        "amount": row.amount,
        "reason": row.reason,
        "status": row.status,
        "opened_at": clock.iso(row.opened_at),
        "respond_by": clock.iso(row.respond_by),
    }


def refund(row: Refund) -> dict[str, Any]:
    """Return the current fields of a refund (rule read.refunds)."""
    return {
        "refund_uuid": str(row.pk),
        "merchant_refund_ref": row.merchant_refund_ref,
        "reason": row.reason,
        "status": row.status,
        "amount": row.amount,
        "created_at": clock.iso(row.created_at),
        "settled_at": clock.iso(row.settled_at),
        "failure_reason": row.failure_reason,
    }


def _shares(parts: list[dict[str, Any]]) -> dict[str, int]:
    """Return counts and sums of the shares, without names (rules read.shares, share.privacy)."""
    paid = [part["amount"] for part in parts if part["status"] in states.SHARE_PAID]
    return {"count": len(parts), "paid_count": len(paid), "paid_amount": sum(paid)}
