"""Finds open card operations, which block all other card operations on the same checkout or share."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import F, Field, FilteredRelation, Func, OuterRef, Q, QuerySet, Subquery

from config.lib.prepared import Prepared
from payments.models import Operation, Payment

# When an operation of these kinds starts, its order counts as changed. The start is recorded only in the row of the
# operation, so that the order's row and its indexes do not have to be written.
KINDS_NOT_ON_ORDER_ROW = (Operation.Kind.AUTHORIZE, Operation.Kind.CAPTURE)


def query_open_operation(subject: UUID | OuterRef) -> QuerySet[Operation]:
    """Return a query for the open card operation on the live payment of a checkout or share.

    Reimbursements and operations on an abandoned payment are excluded, because they do not block other operations.
    """
    return _query_open(payment__subject=subject)


def query_open_operations(subjects: Iterable[UUID]) -> QuerySet[Operation]:
    """Return a query for the open card operations of these checkouts and shares, with their payments."""
    return _query_open(payment__subject__in=list(subjects)).select_related("payment")


def _query_open(**of: Any) -> QuerySet[Operation]:
    return Operation.objects.filter(_is_open_card_operation(), payment__is_live=True, **of)


def _is_open_card_operation(prefix: str = "") -> Q:
    return Q(**{f"{prefix}is_open": True}) & ~Q(**{f"{prefix}purpose": Operation.Purpose.REIMBURSEMENT})


def pending_operation_of(subject: str) -> Subquery:
    """Return a subquery for the pending operation of a checkout or share: `[kind, created_at]` as JSON, or null.

    `subject` is the column of the outer query with the id of the checkout or share. The pending operation is the open
    operation, or else a planned void or refund. A void or refund is pending as soon as it is planned, because the
    order's row does not change when the pump sends or retries it.
    """
    rows = Operation.objects.filter(payment__subject=OuterRef(subject), payment__is_live=True, ended_at=None)
    is_planned = Q(state=Operation.State.PLANNED, kind__in=[Operation.Kind.VOID, Operation.Kind.REFUND])
    of_card = rows.exclude(purpose=Operation.Purpose.REIMBURSEMENT).filter(Q(is_open=True) | is_planned)
    summary = Func(F("kind"), F("created_at"), function="json_build_array", output_field=Field())
    return Subquery(of_card.order_by("-is_open").values_list(summary)[:1])


def orders_with_call_since(merchant_uuid: UUID, since: datetime) -> list[UUID]:
    """Return the merchant's orders that have an unanswered call that began after `since`.

    Only authorizations and captures count. The order's row does not record when such a call starts, but it records
    every answer.
    """
    return [operation.payment.subject for operation in _CALLS_SINCE.all(merchant_uuid, since)]


def _calls_since(merchant: UUID, since: datetime) -> QuerySet[Operation]:
    of_orders = {"payment__merchant": merchant, "payment__kind": Payment.Kind.ORDER, "created_at__gte": since}
    rows = _query_open(kind__in=KINDS_NOT_ON_ORDER_ROW, state=Operation.State.IN_FLIGHT, **of_orders)
    return rows.select_related("payment")


_CALLS_SINCE = Prepared(_calls_since, UUID, datetime)


def with_open_kind(rows: QuerySet[Any]) -> QuerySet[Any, Any]:
    """Add `open_kind` to checkouts or shares: the kind of their open operation, or null."""
    kind = query_open_operation(OuterRef("pk")).values("kind")[:1]
    annotated: QuerySet[Any, Any] = rows.annotate(open_kind=Subquery(kind))
    return annotated


class LivePayment(NamedTuple):
    """The live payment of a checkout or share, with the id and the kind of its open operation, if there is one."""

    payment: Payment
    open_uuid: UUID | None
    open_kind: str | None


def live_payment(subject: UUID) -> LivePayment | None:
    """Return the live payment of a checkout or share and its open operation, both read in one statement."""
    payment: Any = _LIVE_PAYMENT.first(subject)
    return LivePayment(payment, payment.open_uuid, payment.open_kind) if payment else None


def query_live_payment(subject: UUID) -> QuerySet[Payment, Any]:
    """Return a query for the live payment of a checkout or share.

    The id and the kind of its open operation are in `open_uuid` and `open_kind`.
    """
    rows = Payment.objects.filter(subject=subject, is_live=True)
    with_open = rows.annotate(
        open=FilteredRelation("operations", condition=_is_open_card_operation("operations__"))
    )
    return with_open.annotate(open_uuid=F("open__id"), open_kind=F("open__kind"))


_LIVE_PAYMENT = Prepared(query_live_payment, UUID)


def open_operation(subject: UUID) -> Operation | None:
    """Return the open card operation of a checkout or share with its payment, or None."""
    return _OPEN_OPERATION.first(subject)


def open_operation_of_row(row: Any) -> Operation | None:
    """Return the open card operation of the checkout or share in `row`, or None.

    If the row comes from a query with `with_open_kind` and had no open operation, there is no further query.
    """
    return open_operation(row.pk) if getattr(row, "open_kind", row) is not None else None


def had_open_operation(row: Any) -> bool:
    """Return whether a row had an open operation when `with_open_kind` read it."""
    return getattr(row, "open_kind", None) is not None


_OPEN_OPERATION = Prepared(lambda subject: query_open_operation(subject).select_related("payment"), UUID)


def abandon_payment(payment: Payment, now: datetime) -> None:
    """Mark a payment as abandoned, so that the payer can use another card before the outcome is known.

    Must be called with the checkout locked.
    """
    Payment.objects.filter(pk=payment.pk, abandoned_at=None).update(abandoned_at=now)
