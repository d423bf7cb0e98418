"""The admin's actions for money that is stuck: the provider is asked first, and the ledger is proven after.

Rules operator.once, operator.proof.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db import OperationalError
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from checkout.models import Checkout
from checkout.proof import proving
from checkout.remedies import asking, booking, closing, giving_up, reasons, sending
from checkout.remedies.asking import NotAllowed
from config.lib import locks
from config.lib.admin import confirming, lists
from payments import due, money, opening
from payments.admin import DiscrepancyAdmin, OperationAdmin
from payments.cause import cause_of_operator
from payments.models import Discrepancy, Operation
from payments.outside import bookings

Kind, State = Operation.Kind, Operation.State
NOTE = "How you know it"


def _of_settled(operation: Operation) -> dict[str, Any]:
    words = {"button": f"Book {money.display(bookings.owed(operation), operation.payment.currency)}"}
    if operation.purpose == Operation.Purpose.REIMBURSEMENT:
        words["text"] = (
            "Only if the lead has the money some other way. It is booked, this card is not tried again, and the share"
            " reads as paid back to the lead."
        )
    return words


def _of_sent(operation: Operation) -> dict[str, Any]:
    what, amount = operation.get_kind_display(), money.display(operation.amount, operation.payment.currency)
    return {
        "text": f"The {what.lower()} goes to the provider at once. {_before_sending(operation)}",
        "button": f"Send {amount} again",
    }


def _before_sending(operation: Operation) -> str:
    """Return under which condition it is in vain or not sent at all."""
    if operation.ended_at is None:
        return "It is sent only if the provider says that it failed or never arrived."
    if reasons.said(operation.reason) == reasons.CLOSED:
        return "If the account is still closed, it is refused again."
    return "If the bank’s reason still holds, it is refused again."


SETTLE = confirming.Question(
    title="Close as settled otherwise",
    text="Do it only when the payer has the money. The refund then reads settled and the order refunded, unless another"
    " part is still open. This card is not tried again.",
    label="How it was settled",
    button="Book it as settled",
    one="Settle {} otherwise?",
    of_one=_of_settled,
)
SEND = confirming.Question(
    title="Send again",
    text="It goes to the provider at once.",
    label="Why you send it again",
    button="Send it again",
    one="Send {} again?",
    of_one=_of_sent,
)
GIVE_UP = confirming.Question(
    title="Give up the operation in doubt",
    text="Only if the provider vouches that it never arrived. It counts as failed, and the order goes on; what an"
    " authorization may hold is released first.",
    label=NOTE,
    button="Give it up",
    one="Give up {}?",
)
BOOK = confirming.Question(
    title="Book a refund that was made at the provider",
    text="The money has gone back to the card without us. It is booked once: in place of a refund that came back, if"
    " one is owed to this card, else at the merchant's expense.",
    label=NOTE,
    button="Book it",
    one="Book the refund that was made at the provider?",
)
BUSY = "A card operation is open. Try again in a moment."
RESTORED = "the database was restored. Repair it first (manage.py reconcile --repair)."
Remedy = Callable[..., UUID]  # called with the row's key and the cause; returns the checkout's uuid


def _said_of_operation(operation: Operation) -> str:
    return asking.words(asking.look_up(operation))


def _said_of_record(discrepancy: Discrepancy) -> str:
    try:
        return booking.words(booking.find(discrepancy.pk))
    except NotAllowed as refusal:
        return str(refusal)


class Remedies:
    """What the actions share: who may run a remedy, and how its result is logged and shown."""

    def has_remedy_permission(self: Any, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("payments.change_operation"))

    def remedy(self: Any, request: HttpRequest, rows: QuerySet[Any], act: Remedy, *, done: str) -> None:
        """Run a remedy on the one row, log what was done, prove the checkout's ledger, and show both results."""
        row = rows.get()
        try:
            checkout_uuid = act(row.pk, cause=cause_of_operator(request))
        except NotAllowed as refusal:
            self.message_user(request, f"Nothing is done. {refusal}", messages.WARNING)
            return
        except opening.Closed:
            self.message_user(request, f"Nothing is done: {RESTORED}", messages.WARNING)
            return
        except OperationalError as error:
            if not locks.is_locked(error):
                raise
            self.message_user(request, BUSY, messages.WARNING)
            return
        self.log_change(request, row, done)
        found = proving.report_of(checkout_uuid)
        broken = "; ".join(breach.invariant for breach in found)
        words = f"The ledger is broken, for not: {broken}." if found else "The ledger is proven."
        self.message_user(request, f"{done} {words}", messages.ERROR if found else messages.SUCCESS)


class RemediedOperationAdmin(Remedies, OperationAdmin):
    """An operation at the provider, with the remedies for one that is stuck."""

    actions = ("close_as_settled_otherwise", "send_again", "give_up")

    def offers(self, action: str, row: Operation) -> bool:
        is_refused = row.state in (State.FAILED, State.DECLINED) or row.returned_as is not None
        if action == "close_as_settled_otherwise":
            return row.kind == Kind.REFUND and is_refused
        if action == "send_again":
            return row.kind in (Kind.REFUND, Kind.VOID) and (is_refused or due.is_in_doubt(row))
        return row.kind in (Kind.AUTHORIZE, Kind.CAPTURE) and due.is_in_doubt(row)

    @admin.action(description="Close as settled otherwise: the card can't take it", permissions=["remedy"])
    @confirming.confirmed(SETTLE, seen=_said_of_operation)
    def close_as_settled_otherwise(self, request: HttpRequest, rows: QuerySet[Operation], note: str) -> None:
        act = partial(closing.close_as_settled_otherwise, note=note)
        self.remedy(request, rows, act, done=f"Closed as settled otherwise: {note}.")

    @admin.action(description="Send again: it failed, or never arrived", permissions=["remedy"])
    @confirming.confirmed(SEND, seen=_said_of_operation)
    def send_again(self, request: HttpRequest, rows: QuerySet[Operation], note: str) -> None:
        self.remedy(request, rows, sending.send_again, done=f"Sent again: {note}.")

    @admin.action(description="Give up the operation: it never arrived", permissions=["remedy"])
    @confirming.confirmed(GIVE_UP, seen=_said_of_operation)
    def give_up(self, request: HttpRequest, rows: QuerySet[Operation], note: str) -> None:
        act = partial(giving_up.give_up, note=note)
        self.remedy(request, rows, act, done=f"Given up: {note}.")


class RemediedDiscrepancyAdmin(Remedies, DiscrepancyAdmin):
    """A discrepancy, with the booking of a refund that somebody made at the provider."""

    actions = (*DiscrepancyAdmin.actions, "book_outside_refund")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find by a kind, a note or an order's id."""
        found, _ = super().get_search_results(request, queryset, search_term)
        term = search_term.replace("\0", "").strip()
        if not term:
            return found, False
        orders = list(lists.find(Checkout, ["merchant_order_id__iexact"], term, ["merchant_order_id"]))
        is_about = Q(subject__in=orders) | Q(operation__payment__checkout_uuid__in=orders)
        return queryset.filter(Q(pk__in=found.order_by().values("pk")) | is_about), False

    def offers(self, action: str, row: Discrepancy) -> bool:
        is_bookable = action != "book_outside_refund" or row.kind == booking.TOLD_AS
        return is_bookable and super().offers(action, row)

    @admin.action(description="Book the refund", permissions=["remedy"])
    @confirming.confirmed(BOOK, seen=_said_of_record)
    def book_outside_refund(self, request: HttpRequest, rows: QuerySet[Discrepancy], note: str) -> None:
        act = partial(booking.book_outside_refund, note=note)
        self.remedy(request, rows, act, done=f"Booked: {note}.")
