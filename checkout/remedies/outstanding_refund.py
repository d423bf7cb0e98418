"""Functions that find the amount that is still owed for a failed or returned refund, with the order locked."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from checkout.models import Checkout, Refund
from checkout.remedies.status_check import NotAllowed
from checkout.settling import amounts_owed, cards
from checkout.settling.cards import PartKey
from payments import disputes, planning
from payments.models import Movement, Operation

State = Operation.State
UNDER_WAY = "The operation is under way. Look again in a minute."
NOT_OWED = "No refund is owed to the card any more."
WHOLE_REFUND_FAILED = (
    "The whole refund failed, so the merchant has the money and owes no card a part of it. The merchant can refund the"
    " order again."
)


@dataclass(frozen=True)
class AmountDue:
    """The amount that a card is owed for one part of a refund, in minor units.

    `resends` is the returned refund, or None if the refund failed. `planned` are the attempts that are planned but
    were not sent yet.
    """

    amount: int
    key: PartKey
    resends: Operation | None
    planned: list[Operation]

    def withdraw_planned(self, now: datetime) -> None:
        ids = [row.pk for row in self.planned]
        planning.withdraw_planned(Operation.objects.filter(pk__in=ids), now=now)


def check_refused(refund: Operation) -> None:
    """Raise NotAllowed unless the operation is a refund that failed or that was returned later."""
    if refund.kind != Operation.Kind.REFUND or not (was_refused(refund) or was_returned(refund)):
        raise NotAllowed("Only a refund that failed or was returned can be sent again or settled outside.")


def was_refused(operation: Operation) -> bool:
    """Return whether an operation was refused.

    A refund that was withdrawn or replaced does not count. If it is still owed, the service sends it when it is due.
    """
    is_refund = operation.kind == Operation.Kind.REFUND
    is_ended = operation.state in (State.FAILED, State.DECLINED)
    return is_ended and not (is_refund and operation.reason in cards.NOT_CARRIED_OUT)


def was_returned(refund: Operation) -> bool:
    """Return whether the operation is a settled refund that was returned later.

    If the row comes from a query with `with_refund_facts`, there is no further query.
    """
    if refund.kind != Operation.Kind.REFUND or refund.state != State.SUCCEEDED:
        return False
    annotated: bool | None = getattr(refund, "has_return", None)
    returns = refund.movements.filter(kind=Movement.Kind.REFUND_RETURNED)
    return returns.exists() if annotated is None else annotated


def has_failed_as_a_whole(refund: Operation) -> bool:
    """Return whether the operation is a part of a refund that failed because no part of it reached a card.

    The order is then captured again, and no card is owed an amount. If the row comes from a query with
    `with_refund_facts`, there is no further query. Rule refund.failed.
    """
    if refund.refund_uuid is None:
        return False
    annotated: bool | None = getattr(refund, "has_failed_refund", None)
    return _failed_refunds().filter(pk=refund.refund_uuid).exists() if annotated is None else annotated


def _failed_refunds() -> QuerySet[Refund]:
    return Refund.objects.filter(status=Refund.Status.FAILED, settled_at=None)


def with_refund_facts(rows: QuerySet[Operation, Any]) -> QuerySet[Operation, Any]:
    """Add two facts to each operation: whether it was returned later, and whether its whole refund failed."""
    returns = Movement.objects.filter(operation=OuterRef("pk"), kind=Movement.Kind.REFUND_RETURNED)
    failed = _failed_refunds().filter(pk=OuterRef("refund_uuid"))
    return rows.annotate(has_return=Exists(returns), has_failed_refund=Exists(failed))


def check_not_disputed(checkout: Checkout) -> None:
    """Raise NotAllowed while a dispute is open on a card of the order (rule dispute.no_refund)."""
    if disputes.has_open_dispute(checkout.pk):
        raise NotAllowed(
            "A card of the order is disputed, so the money could go back twice. Wait until the dispute is decided."
        )


def find_amount_due(checkout: Checkout, refund: Operation, now: datetime) -> AmountDue:
    """Return the amount that the card is owed for a refund.

    If no amount can be sent, raises NotAllowed with the reason. Must be called with the checkout locked.
    """
    check_refused(refund)
    check_not_disputed(checkout)
    accounts = cards.read_accounts(checkout)
    key = cards.part_key_of(refund)
    part = accounts.parts.get(key) if key else None
    if key is None or part is None:
        raise NotAllowed("The refund was made at the provider, so no further refund is owed.")
    if part.unconfirmed:
        raise NotAllowed(UNDER_WAY)
    owed = next(
        (
            amount_owed.amount
            for amount_owed in amounts_owed.find_amounts_owed(accounts, now)
            if amount_owed.key == key
        ),
        0,
    )
    amount = part.outstanding or owed
    if amount <= 0:
        raise NotAllowed(WHOLE_REFUND_FAILED if has_failed_as_a_whole(refund) else NOT_OWED)
    resends = refund if part.outstanding else None
    return AmountDue(amount, key, resends, [row for row in part.attempts if row.state == State.PLANNED])
