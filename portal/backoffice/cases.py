"""Cases: the open discrepancies as operators see them, with their cause, amount, age and possible actions.

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

from checkout.models import Checkout, PaymentRequest
from checkout.remedies import outstanding_refund, reasons
from checkout.settling import amounts_owed
from config.lib.admin import columns
from config.lib.admin.readonly import OperatorAdmin
from payments import money, planning
from payments.discrepancies import definitions, kinds
from payments.discrepancies.definitions import Remedy
from payments.models import Discrepancy, Dispute, Operation, Payment
from portal.backoffice import ages, frame

MAX_LISTED = 50  # the maximum number of cases that are read and counted
MAX_SHOWN = 8  # the maximum number of cases that a page shows in full
URGENT_AFTER = timedelta(days=1)
WHOLE_REFUND_FAILED = (
    f"{outstanding_refund.WHOLE_REFUND_FAILED} Inform the merchant, then close the discrepancy."
)
# The admin actions for which a case can have buttons, and the labels of the buttons.
BUTTON_LABELS = {remedy.action: remedy.words for remedy in definitions.REMEDIES}
REFUSED_STATES = (Operation.State.FAILED, Operation.State.DECLINED)
DISCREPANCY_ACTIONS = [remedy.action for remedy in definitions.REMEDIES if remedy.page == "discrepancy"]


@dataclass(frozen=True)
class Button:
    """A button for an admin action on one row, with the address of the page that asks for confirmation.

    The operator writes a note on that page before the action changes the row.
    """

    words: str
    action: str
    address: str


@dataclass(frozen=True)
class Case:
    """An open discrepancy, with the texts and links that operators' pages show for it."""

    discrepancy: Discrepancy
    title: str
    meaning: str
    amount: str
    age: str
    is_old: bool
    payment: Payment | None
    order_uuid: UUID | None
    order_id: str
    buttons: Sequence[Button]
    explanation: str = ""  # the cause or the deadline, as a sentence
    dispute_uuid: UUID | None = None
    difference: str = ""  # the difference between the provider's amount and ours
    instructions: str = ""  # what to do
    card: str = ""  # the card that gets a refund
    purpose: str = ""  # the card that gets a refund, and why; it distinguishes two cases of one card

    @property
    def headline(self) -> str:
        """Return a short title with the amount."""
        if self.discrepancy.kind_entry is kinds.ANOTHER_AMOUNT and self.explanation:
            return self.explanation.removesuffix(".")
        if self.discrepancy.kind_entry is kinds.REFUND_PART_FAILED and self.card:
            return f"A refund of {self.amount} did not reach {self.card}"
        headline = f"{self.title}, {self.amount}" if self.amount else self.title
        return f"{headline} ({self.purpose})" if self.purpose else headline

    @property
    def reason(self) -> str:
        """Return the sentence below the headline.

        It is the `explanation`. If the explanation is empty, or the headline already says the same, the
        sentence names the remedy.
        """
        is_repeated = self.explanation.startswith(self.headline)
        return self.instructions if is_repeated or not self.explanation else self.explanation

    @property
    def decided_at(self) -> str:
        """Return the link to the case on the operations page, which shows only the oldest cases."""
        return f"{reverse('admin_operations')}#case-{self.discrepancy.pk}"

    @property
    def is_decided_elsewhere(self) -> bool:
        """Return whether the case is a dispute. The payer's bank decides disputes."""
        return self.discrepancy.kind_entry is kinds.DISPUTED


def open_cases(now: datetime, request: HttpRequest | None, order_uuid: UUID | None = None) -> list[Case]:
    """Return the oldest open discrepancies as cases, for all orders or for one order.

    The cases have buttons for the actions that the request's operator may take. Without a request, they have
    no buttons.
    """
    rows: QuerySet[Any] = with_order_and_deadline(
        Discrepancy.objects.filter(closed_at=None).order_by("created_at")
    )
    if order_uuid is not None:
        rows = rows.filter(order_uuid=order_uuid)
    return [build_case(row, now, request) for row in rows[:MAX_LISTED]]


def cases_in_full(cases: Sequence[Case], request: HttpRequest | None) -> Sequence[Case]:
    """Return the cases to show in full.

    These are the oldest MAX_SHOWN cases. If the operator may not see the list of discrepancies, they are all
    cases.
    """
    return cases[:MAX_SHOWN] if request is None or frame.may_see(request, "payments.discrepancy") else cases


def list_links(cases: Sequence[Case], visible_cases: Sequence[Case]) -> list[tuple[str, str]]:
    """Return links to the lists of all discrepancies and disputes, or no links if all cases are shown.

    The links show the number of cases. If MAX_LISTED cases were read, there can be more, so the links do not
    show a number.
    """
    if len(visible_cases) == len(cases):
        return []
    address = f"{columns.list_address('payments.discrepancy')}?state=open"
    disputes = sum(case.is_decided_elsewhere for case in cases)
    if len(cases) == MAX_LISTED:
        labels = ("All open discrepancies", "All open disputes")
    else:
        labels = (f"All {len(cases)} discrepancies", f"{disputes} disputes" if disputes > 1 else "1 dispute")
    return [
        (labels[0], address),
        *([(labels[1], f"{address}&kind={kinds.DISPUTED.name}")] if disputes else []),
    ]


def with_order_and_deadline(rows: QuerySet[Discrepancy]) -> QuerySet[Discrepancy, Any]:
    """Add to a query of discrepancies what `build_case` needs: orders, deadlines, merchants and payments."""
    checkout_in_facts = Cast(KeyTextTransform("checkout", "facts"), UUIDField())
    order_uuid = Coalesce("operation__payment__checkout_uuid", checkout_in_facts, "subject")
    annotated = rows.select_related("merchant", "operation__payment").annotate(order_uuid=order_uuid)
    until = Dispute.objects.filter(pk=OuterRef("subject")).values("respond_by")[:1]
    return annotated.annotate(order_id=order_id_of("order_uuid"), respond_by=Subquery(until))


def orders_and_amounts(keys: Sequence[UUID]) -> dict[UUID, tuple[str, str]]:
    """Return the order id and the amount for each discrepancy. An unknown value is ""."""
    rows: QuerySet[Any] = with_order_and_deadline(Discrepancy.objects.filter(pk__in=keys))
    return {row.pk: (row.order_id or "", _amount_words(row)) for row in rows}


def order_id_of(column: str) -> Subquery:
    """Return a subquery for the order id of the checkout whose UUID is in `column`. Without a checkout, it is null."""
    return Subquery(Checkout.objects.filter(pk=OuterRef(column)).values("merchant_order_id")[:1])


def build_case(row: Any, now: datetime, request: HttpRequest | None) -> Case:
    """Return the case for a discrepancy. The row must have been read with `with_order_and_deadline`."""
    age, explanation, instructions = now - row.created_at, _reason_words(row), instructions_of(row, now)
    return Case(
        discrepancy=row,
        title=row.kind_entry.sentence,
        meaning=f"{explanation} {instructions}".strip(),
        instructions=instructions,
        card=_card_words(row.operation),
        amount=_amount_words(row),
        age=ages.in_words(age),
        is_old=age > URGENT_AFTER,
        payment=row.operation.payment if row.operation else None,
        order_uuid=row.order_uuid if row.order_id else None,
        order_id=row.order_id or "",
        buttons=list(_available_buttons(row, request)) if request is not None else [],
        explanation=explanation,
        dispute_uuid=row.subject if row.kind_entry is kinds.DISPUTED else None,
        difference=_difference_words(row),
        purpose=_purpose_words(row.operation),
    )


def instructions_of(row: Discrepancy, now: datetime) -> str:
    """Return what to do about a discrepancy. The text mentions hourly attempts only while the service makes them."""
    instructions = row.kind_entry.what_to_do
    if not instructions.startswith(kinds.RETRIED_HOURLY):
        return instructions
    if row.operation is not None and outstanding_refund.has_failed_as_a_whole(row.operation):
        return WHOLE_REFUND_FAILED
    first = amounts_owed.first_tried_at(row.operation) if row.operation else row.created_at
    if row.closed_at is None and now - first < amounts_owed.TRIED_FOR:
        return instructions
    return instructions.removeprefix(kinds.RETRIED_HOURLY).lstrip()


def remedies_of(row: Discrepancy, operation: Operation | None = None) -> Sequence[Remedy]:
    """Return the remedies of a discrepancy that have a button now. All their buttons are on one page.

    `operation` is the attempt whose page shows the buttons. By default, it is the one that was reported. If an
    operation in doubt has ended since, or if the whole refund has failed, the only remedy is to close the discrepancy.
    """
    remedies, target = row.kind_entry.remedies, operation or row.operation
    if target is None or not remedies or remedies[0].page == "discrepancy":
        return remedies
    offered = tuple(remedy for remedy in remedies if admin_of(target).offers(remedy.action, target))
    has_ended = row.kind in planning.DOUBTS and target.ended_at is not None
    is_over = has_ended or outstanding_refund.has_failed_as_a_whole(target)
    return (definitions.CLOSE,) if is_over and not offered else offered


def _card_words(operation: Operation | None) -> str:
    """Return the card that gets a refund, such as "the lead’s card", or "" if the operation is not a refund."""
    if operation is None or operation.kind != Operation.Kind.REFUND:
        return ""
    is_mates = operation.payment.kind == Payment.Kind.SHARE
    return (
        f"the mate’s card ({_share_words(payment=operation.payment_id)})" if is_mates else "the lead’s card"
    )


def _purpose_words(operation: Operation | None) -> str:
    """Return the card that gets a refund, and why, or "" if the operation is not a refund."""
    if operation is None or operation.kind != Operation.Kind.REFUND:
        return ""
    if operation.purpose == Operation.Purpose.REIMBURSEMENT:
        return f"for {_share_words(pk=operation.share_uuid)}, to the lead’s card"
    if operation.payment.kind == Payment.Kind.SHARE:
        return f"refund of {_share_words(payment=operation.payment_id)}, to the mate’s card"
    return "refund to the lead’s card"


def _share_words(**lookup: UUID | None) -> str:
    share = PaymentRequest.every.filter(**lookup).first()
    if share is None:
        return "a share"
    return f"{share.shown_name}’s share" if share.shown_name else f"share {share.position}"


def _reason_words(row: Any) -> str:
    """Return a sentence about the cause of a discrepancy, or "" if it is unknown.

    Depending on the kind, the sentence contains both amounts, the deadline of a dispute, the changes to a
    card page, or the bank's reason.
    """
    kind = row.kind_entry
    if kind is kinds.ANOTHER_AMOUNT:
        return _amounts_sentence(row)
    if kind is kinds.DISPUTED:
        return f"Answer by {row.respond_by.day} {row.respond_by:%b, %H:%M}." if row.respond_by else ""
    if kind is kinds.CARD_PAGE_CHANGED:
        return " ".join(row.facts.get("changes", ()))
    has_failed = row.operation is not None and row.operation.state in REFUSED_STATES
    return reasons.reason_text(row.operation.reason) if has_failed else ""


def _amounts_sentence(row: Discrepancy) -> str:
    """Return a sentence with the provider's amount and ours, or "" if the provider gave no amount."""
    provider_amount = row.facts.get("amount")
    if row.operation is None or not isinstance(provider_amount, int):
        return ""
    return f"The provider says {money.display(provider_amount, _currency_of(row))}, we have {_amount_words(row)}."


def _difference_words(row: Discrepancy) -> str:
    """Return the difference between the provider's amount and ours, or "" if the two cannot be compared."""
    provider_amount, currency = row.facts.get("amount"), _currency_of(row)
    if (
        row.kind_entry is not kinds.ANOTHER_AMOUNT
        or row.operation is None
        or not isinstance(provider_amount, int)
    ):
        return ""
    is_comparable = currency == row.operation.payment.currency
    return money.display(abs(provider_amount - row.operation.amount), currency) if is_comparable else ""


def _currency_of(row: Discrepancy) -> str:
    """Return the currency of the provider's amount.

    It is the payment's currency, unless the provider named a different one.
    """
    payment_currency = row.operation.payment.currency if row.operation else ""
    return str(row.facts.get("currency") or payment_currency)


def _amount_words(row: Discrepancy) -> str:
    if row.operation:
        return money.display(row.operation.amount, row.operation.payment.currency)
    amount, currency = row.facts.get("amount"), row.facts.get("currency")
    return money.display(amount, currency) if isinstance(amount, int) and isinstance(currency, str) else ""


def _available_buttons(row: Discrepancy, request: HttpRequest) -> Iterator[Button]:
    for target in (row.operation, row):
        if target is not None:
            yield from _buttons_of(target, request)


def admin_of(row: Model) -> OperatorAdmin:
    """Return the admin that is registered for a row's model. Its actions become the buttons of cases."""
    return cast(OperatorAdmin, admin.site.get_model_admin(type(row)))


def _buttons_of(row: Operation | Discrepancy, request: HttpRequest) -> Iterator[Button]:
    registered = admin_of(row)
    allowed = registered.get_actions(request)
    for action, words in BUTTON_LABELS.items():
        if action in allowed and registered.offers(action, row):
            yield Button(words, action, reverse("admin_ask", args=[action, row.pk]))
