"""Describes the rows about which an operator is asked before an action changes them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Model

from checkout.models import Checkout
from config.lib.admin import columns
from payments import money, planning
from payments.models import Discrepancy, Merchant, Operation
from portal.backoffice import badges, cases
from portal.badges import Badge

# The verb for each outcome of an operation.
ENDED = {
    Operation.State.FAILED: "failed",
    Operation.State.DECLINED: "declined",
    Operation.State.SUCCEEDED: "settled",
}


@dataclass(frozen=True)
class RowDescription:
    """The description of a row about which an operator is asked. A missing value is "" or None."""

    title: str
    address: str
    badge: Badge | None = None
    amount: str = ""
    order_id: str = ""
    order_uuid: UUID | None = None
    merchant: str = ""
    card: str = ""
    difference: str = ""  # if this is not "", it is shown instead of the amount
    at: datetime | None = None
    time_label: str = "since"  # the word that precedes the time, such as "created"


def describe_rows(rows: Sequence[Model]) -> list[RowDescription]:
    """Return the descriptions of rows of one model. One statement reads the orders of all rows."""
    if rows and isinstance(rows[0], Discrepancy):
        return list(_describe_discrepancies(rows))
    if rows and isinstance(rows[0], Operation):
        return list(_describe_operations(rows))
    return [_describe_row(row) for row in rows]


def _describe_row(row: Any) -> RowDescription:
    address = columns.page_address(row._meta.label_lower, row.pk)
    if isinstance(row, Checkout):
        card = f"{row.payment.card_brand} {row.payment.card_last4}" if row.payment else ""
        amount = money.display(row.amount, row.currency)
        badge = badges.of_checkout(row)
        return RowDescription(
            row.merchant_order_id,
            address,
            badge,
            amount,
            merchant=str(row.merchant),
            card=card,
            at=row.created_at,
            time_label="created",
        )
    if isinstance(row, Merchant):
        return RowDescription(row.name, address, badges.of_merchant(row))
    return RowDescription(str(row), address)


def _describe_operations(rows: Sequence[Any]) -> Iterator[RowDescription]:
    ids = read_order_ids([row.payment.checkout_uuid for row in rows])
    for row in rows:
        yield RowDescription(
            title=badges.operation_title(row),
            address=columns.page_address("payments.operation", row.pk),
            badge=badges.of_operation(row),
            amount=money.display(row.amount, row.payment.currency),
            order_id=ids.get(row.payment.checkout_uuid, ""),
            order_uuid=row.payment.checkout_uuid,
            merchant=str(row.payment.merchant),
            card=f"{row.payment.card_brand} {row.payment.card_last4}",
            at=row.ended_at or row.created_at,
            time_label="replaced" if planning.was_replaced(row) else ENDED.get(row.state, "since"),
        )


def _describe_discrepancies(rows: Sequence[Any]) -> Iterator[RowDescription]:
    discrepancies = cases.with_order_and_deadline(
        Discrepancy.objects.filter(pk__in=[row.pk for row in rows]).order_by("created_at")
    )
    for row in discrepancies:
        case = cases.build_case(row, row.created_at, None)
        yield RowDescription(
            title=case.title,
            address=columns.page_address("payments.discrepancy", row.pk),
            badge=badges.CLOSED if row.closed_at else None,
            amount=case.amount,
            order_id=case.order_id,
            order_uuid=case.order_uuid,
            merchant=str(row.merchant or "Unknown merchant"),
            card=f"{case.payment.card_brand} {case.payment.card_last4}" if case.payment else "",
            difference=case.difference,
            at=row.created_at,
        )


def read_order_ids(uuids: Sequence[UUID]) -> Mapping[UUID, str]:
    """Return the merchants' order ids, keyed by the orders' UUIDs."""
    return dict(Checkout.objects.filter(pk__in=uuids).values_list("pk", "merchant_order_id"))
