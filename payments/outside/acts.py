"""Acts in the provider's own dashboard that moved a payment of ours, told apart from unknown records."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, JSONObject

from payments.models import Booking, Discrepancy, Payment
from payments.provider import Record, Verdict

# The discrepancy for each kind: an operator asks the provider, then books the act or closes it with a note.
KINDS = {"capture": "outside_capture", "void": "outside_void", "refund": "outside_refund"}
UNKNOWN_ORDER = "unknown_order"
MOVES = (Verdict.SUCCEEDED, Verdict.PENDING)


def payments_of(records: Iterable[Record]) -> Mapping[UUID, Payment]:
    """Return the payments of ours that the records name, by their ids."""
    return Payment.objects.in_bulk({record.payment for record in records})


def booked(records: Iterable[Record]) -> set[UUID]:
    """Return the keys of the records that an operator has booked, which are not reported again."""
    known = Booking.objects.filter(reference__in=[record.key for record in records])
    return {key for key in known.values_list("reference", flat=True) if key is not None}


def of_unknown_orders(records: Iterable[Record]) -> set[UUID]:
    """Return the payments of the records that were reported as an unknown order's after a restore."""
    reported = Discrepancy.objects.filter(
        kind=UNKNOWN_ORDER, subject__in=[record.payment for record in records]
    )
    return {subject for subject in reported.values_list("subject", flat=True) if subject is not None}


def kind_of(record: Record, payments: Mapping[UUID, Payment], *, otherwise: str) -> str:
    """Return the discrepancy for a record under no key of ours: `otherwise` unless it moved a payment of ours."""
    payment = payments.get(record.payment)
    is_ours = payment is not None and payment.merchant_id == record.account
    return KINDS.get(record.kind, otherwise) if is_ours and record.verdict in MOVES else otherwise


def facts_of(record: Record, payments: Mapping[UUID, Payment]) -> dict[str, Any]:
    """Return what such a discrepancy says of the record, and of whose order it is; nothing of no payment of ours."""
    payment = payments.get(record.payment)
    if payment is None:
        return {}
    facts = {"payment": str(payment.pk), "checkout": str(payment.checkout_uuid)}
    return facts | {"amount": record.amount, "currency": record.currency}


def open_on(checkout: OuterRef, merchant: OuterRef) -> ArraySubquery:
    """Return a subquery for the acts on an order that no operator has booked or closed yet: kind, facts and `at`."""
    rows = Discrepancy.objects.filter(kind__in=KINDS.values(), closed_at=None, merchant=merchant)
    of_order = rows.annotate(of=KeyTextTransform("checkout", "facts")).filter(of=Cast(checkout, TextField()))
    told = JSONObject(kind="kind", facts="facts", at="created_at")
    return ArraySubquery(of_order.order_by("created_at").values(told=told))
