"""What needs a person, told as a sentence each: what it is, whose money, since when, and what can be done about it.

Rule operator.page.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from django.contrib import admin
from django.db.models import Model, OuterRef, QuerySet, Subquery, UUIDField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce
from django.http import HttpRequest
from django.urls import reverse

from checkout.models import Checkout
from config.lib.admin.readonly import OperatorAdmin
from config.operators import ages
from payments import money
from payments.models import Discrepancy, Operation, Payment
from payments.tasks import WHAT_TO_DO

LISTED = 50
URGENT_AFTER = timedelta(days=1)
# What each kind of discrepancy is, in a few words; one that has none reads as its kind does.
SENTENCES = {
    "disputed": "A payer disputes a charge",
    "dispute_lost": "A dispute is lost",
    "dispute_decided_anew": "A dispute was decided anew",
    "dispute_of_another_amount": "A dispute about another amount",
    "owed_beyond_dispute": "More is owed to the lead than a dispute has given back",
    "disputed_while_refunding": "Disputed while it was refunded",
    "refund_returned": "A refund came back",
    "in_doubt_for_a_day": "In doubt for a day",
    "capture_pending_too_long": "A capture is accepted and not confirmed",
    "refund_part_failed": "A refund cannot reach the card",
    "share_not_reimbursed": "A mate’s share cannot reach the lead’s card",
    "succeeded_under_an_old_key": "Done perhaps twice",
    "another_amount": "The provider speaks of another amount",
    "captured_after_the_end": "Charged for an order that has ended",
    "void_refused": "A hold cannot be released",
    "void_refused_as_captured": "Charged for an order that has ended",
    "forged_notification": "A notification with a wrong signature",
    "notification_of_nothing": "A notification about nothing of ours",
    "outside_capture": "Captured in the provider’s own dashboard",
    "outside_void": "Released in the provider’s own dashboard",
    "outside_refund": "Refunded in the provider’s own dashboard",
    "missing_here": "The provider has moved money that we know nothing of",
    "missing_there": "The provider does not know what we hold for done",
    "unknown_order": "A charge for an order that was lost in a restore",
    "restored_refund": "A refund that was lost in a restore",
}
# What the actions of the admin are called here, and what they are done to.
VERBS = {
    "send_again": "Send again",
    "close_as_settled_otherwise": "Settled otherwise",
    "give_up": "Give up the operation",
    "book_outside_refund": "Book the refund",
    "close": "Close with a note",
}
OF_DISCREPANCIES = ("book_outside_refund", "close")


@dataclass(frozen=True)
class Verb:
    """An action of the admin on one row, which asks for a note before it does anything; its question's address."""

    words: str
    action: str
    address: str


@dataclass(frozen=True)
class Case:
    """An open discrepancy as a person reads it."""

    discrepancy: Discrepancy
    title: str
    meaning: str
    amount: str
    age: str
    is_old: bool
    payment: Payment | None
    order_uuid: UUID | None
    order_id: str
    verbs: Sequence[Verb]


def read(now: datetime, request: HttpRequest | None) -> list[Case]:
    """Return the oldest open discrepancies as cases, with the verbs that this operator may use."""
    told = Cast(KeyTextTransform("checkout", "facts"), UUIDField())
    about = Coalesce("operation__payment__checkout_uuid", told, "subject")
    rows: QuerySet[Discrepancy, Any] = Discrepancy.objects.filter(closed_at=None).order_by("created_at")
    rows = rows.select_related("merchant", "operation__payment").annotate(about=about)
    return [_case(row, now, request) for row in rows.annotate(order_id=order_id_of("about"))[:LISTED]]


def order_id_of(column: str) -> Subquery:
    """Return a subquery for the merchant's id of the order whose uuid is in a column, null if it is none."""
    return Subquery(Checkout.objects.filter(pk=OuterRef(column)).values("merchant_order_id")[:1])


def _case(row: Any, now: datetime, request: HttpRequest | None) -> Case:
    age = now - row.created_at
    return Case(
        discrepancy=row,
        title=SENTENCES.get(row.kind, row.kind.replace("_", " ").capitalize()),
        meaning=WHAT_TO_DO.get(row.kind, "Compare the operation with the provider’s own page."),
        amount=_amount(row),
        age=ages.in_words(age),
        is_old=age > URGENT_AFTER,
        payment=row.operation.payment if row.operation else None,
        order_uuid=row.about if row.order_id else None,
        order_id=row.order_id or "",
        verbs=list(_verbs(row, request)) if request is not None else [],
    )


def _amount(row: Discrepancy) -> str:
    if row.operation:
        return money.display(row.operation.amount, row.operation.payment.currency)
    amount, currency = row.facts.get("amount"), row.facts.get("currency")
    return money.display(amount, currency) if isinstance(amount, int) and isinstance(currency, str) else ""


def _verbs(row: Discrepancy, request: HttpRequest) -> Iterator[Verb]:
    for about in (row.operation, row):
        if about is not None:
            yield from _verbs_of(about, request)


def admin_of(row: Model) -> OperatorAdmin:
    """Return the admin of a row's model, whose actions are the verbs."""
    return cast(OperatorAdmin, admin.site.get_model_admin(type(row)))


def _verbs_of(row: Operation | Discrepancy, request: HttpRequest) -> Iterator[Verb]:
    registered = admin_of(row)
    for action in registered.get_actions(request):
        if action in VERBS and registered.offers(action, row):
            yield Verb(VERBS[action], action, reverse("admin_ask", args=[action, row.pk]))


def about(row: Operation | Discrepancy) -> dict[str, str]:
    """Return the merchant's id of the order that a row is about, and the amount, each "" where there is none."""
    operation = row.operation if isinstance(row, Discrepancy) else row
    if operation is None:
        return {"order_id": "", "amount": _amount(row) if isinstance(row, Discrepancy) else ""}
    orders = Checkout.objects.filter(pk=operation.payment.checkout_uuid)
    return {
        "order_id": orders.values_list("merchant_order_id", flat=True).first() or "",
        "amount": money.display(operation.amount, operation.payment.currency),
    }
