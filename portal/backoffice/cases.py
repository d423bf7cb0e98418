"""Open discrepancies as cases for a person: what happened, whose money, since when, and what can be done.

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
from config.lib.admin import columns
from config.lib.admin.readonly import OperatorAdmin
from payments import money
from payments.discrepancies import definitions, kinds
from payments.models import Discrepancy, Dispute, Operation, Payment
from portal.backoffice import ages, frame
from portal.orders import reasons

LISTED = 50  # cases that are read and counted
SHOWN = 8  # cases that the overview and the operations page show in full
URGENT_AFTER = timedelta(days=1)
# The admin's actions that cases offer, and the words of their buttons.
VERBS = {remedy.action: remedy.words for remedy in definitions.REMEDIES}
REFUSED = (Operation.State.FAILED, Operation.State.DECLINED)
OF_DISCREPANCIES = [remedy.action for remedy in definitions.REMEDIES if remedy.page == "discrepancy"]


@dataclass(frozen=True)
class Verb:
    """An admin action on one row, and the address of the page that asks for confirmation.

    The action asks for a note before it changes a row.
    """

    words: str
    action: str
    address: str


@dataclass(frozen=True)
class Case:
    """An open discrepancy in words."""

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
    why: str = ""
    dispute_uuid: UUID | None = None
    difference: str = ""  # between the provider's amount and ours

    @property
    def headline(self) -> str:
        """Return a short title with the amount."""
        if self.discrepancy.kind_entry is kinds.ANOTHER_AMOUNT and self.why:
            return self.why.removesuffix(".")
        return f"{self.title}, {self.amount}" if self.amount else self.title

    @property
    def reason(self) -> str:
        """Return the cause, or the deadline for an answer.

        If neither is known, or the headline says it already, return what to do.
        """
        is_said = self.why.startswith(self.headline)
        return self.discrepancy.kind_entry.what_to_do if is_said or not self.why else self.why

    @property
    def decided_at(self) -> str:
        """Return the address of the case on the operations page, which shows the oldest cases."""
        return f"{reverse('admin_operations')}#case-{self.discrepancy.pk}"

    @property
    def is_decided_elsewhere(self) -> bool:
        """Return whether the case is a dispute, which the payer's bank decides."""
        return self.discrepancy.kind_entry is kinds.DISPUTED


def open_cases(now: datetime, request: HttpRequest | None, order_uuid: UUID | None = None) -> list[Case]:
    """Return the oldest open discrepancies, or those of one order, with the actions of this operator."""
    rows: QuerySet[Any] = named(Discrepancy.objects.filter(closed_at=None).order_by("created_at"))
    if order_uuid is not None:
        rows = rows.filter(about=order_uuid)
    return [case(row, now, request) for row in rows[:LISTED]]


def first(found: Sequence[Case], request: HttpRequest | None) -> Sequence[Case]:
    """Return the cases to show in full.

    They are the oldest ones, or all if this operator cannot see the list of the others.
    """
    return found[:SHOWN] if request is None or frame.may_see(request, "payments.discrepancy") else found


def lists_of(found: Sequence[Case], shown: Sequence[Case]) -> list[tuple[str, str]]:
    """Return links to lists of all cases, if not all are shown.

    If LISTED cases were found, there can be more cases, so the links show no numbers.
    """
    if len(shown) == len(found):
        return []
    address = f"{columns.list_of('payments.discrepancy')}?state=open"
    disputes = sum(case.is_decided_elsewhere for case in found)
    if len(found) == LISTED:
        named = ("All open discrepancies", "All open disputes")
    else:
        named = (f"All {len(found)} discrepancies", f"{disputes} disputes" if disputes > 1 else "1 dispute")
    return [(named[0], address), *([(named[1], f"{address}&kind={kinds.DISPUTED.name}")] if disputes else [])]


def named(rows: QuerySet[Discrepancy]) -> QuerySet[Discrepancy, Any]:
    """Annotate discrepancies with order and deadline, and select their merchant, operation and payment."""
    told = Cast(KeyTextTransform("checkout", "facts"), UUIDField())
    about = Coalesce("operation__payment__checkout_uuid", told, "subject")
    found = rows.select_related("merchant", "operation__payment").annotate(about=about)
    until = Dispute.objects.filter(pk=OuterRef("subject")).values("respond_by")[:1]
    return found.annotate(order_id=order_id_of("about"), respond_by=Subquery(until))


def order_id_of(column: str) -> Subquery:
    """Return a subquery for the merchant's id of the order with the UUID in `column`; null if unknown."""
    return Subquery(Checkout.objects.filter(pk=OuterRef(column)).values("merchant_order_id")[:1])


def case(row: Any, now: datetime, request: HttpRequest | None) -> Case:
    """Return a discrepancy, which was read with `named`, as a case."""
    age, why = now - row.created_at, _reason_words(row)
    return Case(
        discrepancy=row,
        title=row.kind_entry.sentence,
        meaning=f"{why} {row.kind_entry.what_to_do}".strip(),
        amount=_amount_words(row),
        age=ages.in_words(age),
        is_old=age > URGENT_AFTER,
        payment=row.operation.payment if row.operation else None,
        order_uuid=row.about if row.order_id else None,
        order_id=row.order_id or "",
        verbs=list(_available_verbs(row, request)) if request is not None else [],
        why=why,
        dispute_uuid=row.subject if row.kind_entry is kinds.DISPUTED else None,
        difference=_difference_words(row),
    )


def _reason_words(row: Any) -> str:
    """Return the reason in words, or "" if it is unknown.

    It is the bank's reason, the differing amounts, the deadline of a dispute, or the changes of a card page.
    """
    kind = row.kind_entry
    if kind is kinds.ANOTHER_AMOUNT:
        return _spoken_of(row)
    if kind is kinds.DISPUTED:
        return f"Answer by {_format_hour(row.respond_by)}." if row.respond_by else ""
    if kind is kinds.CARD_PAGE_CHANGED:
        return " ".join(row.facts.get("changes", ()))
    has_failed = row.operation is not None and row.operation.state in REFUSED
    return reasons.said(row.operation.reason) if has_failed else ""


def _format_hour(at: datetime) -> str:
    return f"{at.day} {at:%b, %H:%M}"


def _spoken_of(row: Discrepancy) -> str:
    """Return a sentence with the provider's amount and ours, or "" if the provider gave no amount."""
    other = row.facts.get("amount")
    if row.operation is None or not isinstance(other, int):
        return ""
    return f"The provider says {money.display(other, _currency_of(row))}, we have {_amount_words(row)}."


def _difference_words(row: Discrepancy) -> str:
    """Return the difference between the provider's amount and ours, or "" if they are not comparable."""
    other, currency = row.facts.get("amount"), _currency_of(row)
    if row.kind_entry is not kinds.ANOTHER_AMOUNT or row.operation is None or not isinstance(other, int):
        return ""
    is_comparable = currency == row.operation.payment.currency
    return money.display(abs(other - row.operation.amount), currency) if is_comparable else ""


def _currency_of(row: Discrepancy) -> str:
    """Return the currency of the provider's amount.

    It is the payment's currency, unless the provider named a different one.
    """
    own = row.operation.payment.currency if row.operation else ""
    return str(row.facts.get("currency") or own)


def _amount_words(row: Discrepancy) -> str:
    if row.operation:
        return money.display(row.operation.amount, row.operation.payment.currency)
    amount, currency = row.facts.get("amount"), row.facts.get("currency")
    return money.display(amount, currency) if isinstance(amount, int) and isinstance(currency, str) else ""


def _available_verbs(row: Discrepancy, request: HttpRequest) -> Iterator[Verb]:
    for about in (row.operation, row):
        if about is not None:
            yield from _verbs_of(about, request)


def admin_of(row: Model) -> OperatorAdmin:
    """Return the admin that is registered for a row's model. Its actions become verbs."""
    return cast(OperatorAdmin, admin.site.get_model_admin(type(row)))


def _verbs_of(row: Operation | Discrepancy, request: HttpRequest) -> Iterator[Verb]:
    registered = admin_of(row)
    allowed = registered.get_actions(request)
    for action, words in VERBS.items():
        if action in allowed and registered.offers(action, row):
            yield Verb(words, action, reverse("admin_ask", args=[action, row.pk]))
