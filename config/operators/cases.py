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
from config.lib.admin import columns
from config.lib.admin.readonly import OperatorAdmin
from config.operators import ages, shell
from payments import money
from payments.models import Discrepancy, Dispute, Operation, Payment
from payments.tasks import WHAT_TO_DO
from portal.orders import reasons

LISTED = 50  # that are read, and counted
SHOWN = 8  # in full, on the overview and on the page of what needs a person
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
    "card_page_changed": "Browsers get another payment page than this release delivers",
    "card_page_unchecked": "The payment page could not be checked",
    "restored_refund": "A refund that was lost in a restore",
}
# What to do where the verbs lie right below; the mail (payments.tasks) says on which page they are.
HERE = {
    "disputed": "The payer’s bank has taken the money back. Send evidence at the provider{until}. Until it is"
    " decided nothing is refunded, and pay links pause.",
    "refund_part_failed": "The payer has not been paid back. Send it again. If they were paid another way, choose"
    " Settled otherwise.",
    "share_not_reimbursed": "A mate has paid, and the lead has not got it. It is tried each day. If the lead was"
    " paid another way, choose Settled otherwise.",
    "refund_returned": "The money is with the provider again, not with the payer. Send it again. If they were"
    " paid another way, choose Settled otherwise.",
    "in_doubt_for_a_day": "We go on asking. Ask the provider what became of it; then give it up, or send it again.",
    "capture_pending_too_long": "We go on asking. Ask the provider what it waits for. If it vouches that nothing"
    " arrived, give it up.",
    "void_refused": "The payer’s money is still held. Ask the provider to release it, or send it again.",
    "outside_refund": "The provider shows a refund{amount} that nobody began here. Tell the merchant, then book it."
    " Until it is booked, the provider refuses a refund of the rest.",
    "dispute_lost": "The payer keeps the money: it is the merchant’s loss. Tell the merchant, then close this.",
}
# What there is to decide, where a headline says only what has happened.
TO_DECIDE = {
    "dispute_lost": "Tell the merchant that it is their loss, then close it.",
    "outside_refund": "Tell the merchant, then book it.",
}
# What the actions of the admin are called here, and what they are done to.
VERBS = {
    "send_again": "Send again",
    "close_as_settled_otherwise": "Settled otherwise",
    "give_up": "Give up the operation",
    "book_outside_refund": "Book the refund",
    "close": "Close with a note",
}
# In its place where the card can take nothing any more.
TO_A_CLOSED_ACCOUNT = (
    "The payer has not been paid back. Pay them another way, then choose Settled otherwise. Send it again only if the"
    " account is open again."
)
REFUSED = (Operation.State.FAILED, Operation.State.DECLINED)
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
    why: str = ""
    dispute_uuid: UUID | None = None
    difference: str = ""  # between the amount that the provider speaks of and ours

    @property
    def headline(self) -> str:
        """Return what it is in a few words, with the amount that it is about."""
        if self.discrepancy.kind == "another_amount" and self.why:
            return self.why.removesuffix(".")
        return f"{self.title}, {self.amount}" if self.amount else self.title

    @property
    def reason(self) -> str:
        """Return why it is so, until when it can be answered or what is to be decided, if the headline does not."""
        if self.why.startswith(self.headline):
            return ""
        return self.why or TO_DECIDE.get(self.discrepancy.kind, "")

    @property
    def decided_at(self) -> str:
        """Return its address on the page of all that needs a person, which has the oldest ones."""
        return f"{reverse('admin_operations')}#case-{self.discrepancy.pk}"

    @property
    def is_decided_elsewhere(self) -> bool:
        """Whether it is a dispute, which the payer's bank decides."""
        return self.discrepancy.kind == "disputed"


def read(now: datetime, request: HttpRequest | None, order_uuid: UUID | None = None) -> list[Case]:
    """Return the oldest open discrepancies, or those of one order, with the verbs that this operator may use."""
    rows: QuerySet[Any] = named(Discrepancy.objects.filter(closed_at=None).order_by("created_at"))
    if order_uuid is not None:
        rows = rows.filter(about=order_uuid)
    return [case(row, now, request) for row in rows[:LISTED]]


def first(found: Sequence[Case], request: HttpRequest | None) -> Sequence[Case]:
    """Return those that are shown in full: the oldest ones, or all where this operator sees no list of the others."""
    return found[:SHOWN] if request is None or shell.may_see(request, "payments.discrepancy") else found


def lists_of(found: Sequence[Case], shown: Sequence[Case]) -> list[tuple[str, str]]:
    """Return the lists that have all where not all are shown, each with its address; LISTED is no count of all."""
    if len(shown) == len(found):
        return []
    address = f"{columns.list_of('payments.discrepancy')}?state=open"
    disputes = sum(case.is_decided_elsewhere for case in found)
    if len(found) == LISTED:
        named = ("All open discrepancies", "All open disputes")
    else:
        named = (f"All {len(found)} discrepancies", f"{disputes} disputes" if disputes > 1 else "1 dispute")
    return [(named[0], address), *([(named[1], f"{address}&kind=disputed")] if disputes else [])]


def named(rows: QuerySet[Discrepancy]) -> QuerySet[Discrepancy, Any]:
    """Add to discrepancies which order each is about, its merchant, and the operation with its payment."""
    told = Cast(KeyTextTransform("checkout", "facts"), UUIDField())
    about = Coalesce("operation__payment__checkout_uuid", told, "subject")
    found = rows.select_related("merchant", "operation__payment").annotate(about=about)
    until = Dispute.objects.filter(pk=OuterRef("subject")).values("respond_by")[:1]
    return found.annotate(order_id=order_id_of("about"), respond_by=Subquery(until))


def order_id_of(column: str) -> Subquery:
    """Return a subquery for the merchant's id of the order whose uuid is in a column, null if it is none."""
    return Subquery(Checkout.objects.filter(pk=OuterRef(column)).values("merchant_order_id")[:1])


def case(row: Any, now: datetime, request: HttpRequest | None) -> Case:
    """Return a discrepancy of `named` as a person reads it."""
    age = now - row.created_at
    return Case(
        discrepancy=row,
        title=title(row.kind),
        meaning=_meaning(row),
        amount=_amount(row),
        age=ages.in_words(age),
        is_old=age > URGENT_AFTER,
        payment=row.operation.payment if row.operation else None,
        order_uuid=row.about if row.order_id else None,
        order_id=row.order_id or "",
        verbs=list(_verbs(row, request)) if request is not None else [],
        why=_why(row),
        dispute_uuid=row.subject if row.kind == "disputed" else None,
        difference=_difference(row),
    )


def title(kind: str) -> str:
    """Return a kind of discrepancy in a few words."""
    return SENTENCES.get(kind, kind.replace("_", " ").capitalize())


def _meaning(row: Any) -> str:
    """Return why it is so, as far as that is known, and what is to be done."""
    if row.kind == "another_amount":
        why = _why(row) or "The provider gave no amount."
        return f"{why} Ask the provider which amount moved, then close this with its answer as the note."
    what = HERE.get(row.kind) or WHAT_TO_DO.get(
        row.kind, "Compare the operation with the provider’s own page."
    )
    if row.kind == "disputed":
        return what.format(until=f" by {_hour(row.respond_by)}" if row.respond_by else "")
    if row.kind == "outside_refund":
        amount = _amount(row)
        return what.format(amount=f" of {amount}" if amount else "")
    why = _why(row)
    if row.kind == "refund_part_failed" and why == reasons.CLOSED:
        what = TO_A_CLOSED_ACCOUNT
    return f"{why} {what}".strip()


def _why(row: Any) -> str:
    """Return why the bank refused, which amounts differ, or until when a dispute can be answered; "" if unknown."""
    if row.kind == "another_amount":
        return _spoken_of(row)
    if row.kind == "disputed":
        return f"Answer by {_hour(row.respond_by)}." if row.respond_by else ""
    if row.kind == "card_page_changed":
        return " ".join(row.facts.get("changes", ()))
    has_failed = row.operation is not None and row.operation.state in REFUSED
    return reasons.said(row.operation.reason) if has_failed else ""


def _hour(at: datetime) -> str:
    return f"{at.day} {at:%b, %H:%M}"


def _spoken_of(row: Discrepancy) -> str:
    """Return which amount the provider speaks of, and which one we have; "" if it gave none."""
    other = row.facts.get("amount")
    if row.operation is None or not isinstance(other, int):
        return ""
    return (
        f"The provider says {money.display(other, row.operation.payment.currency)}, we have {_amount(row)}."
    )


def _difference(row: Discrepancy) -> str:
    """Return by how much the amount that the provider speaks of is another than ours; "" if it gave none."""
    other = row.facts.get("amount")
    if row.kind != "another_amount" or row.operation is None or not isinstance(other, int):
        return ""
    return money.display(abs(other - row.operation.amount), row.operation.payment.currency)


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
    allowed = registered.get_actions(request)
    for action, words in VERBS.items():
        if action in allowed and registered.offers(action, row):
            yield Verb(words, action, reverse("admin_ask", args=[action, row.pk]))
