"""Admin actions with which operators resolve stuck card operations and bookings.

Each action queries the provider first, and checks the ledger of the checkout afterwards. Rules operator.once,
operator.proof.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from django.contrib import admin, messages
from django.db import OperationalError
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from checkout.models import Checkout
from checkout.proof import ledger_proof
from checkout.remedies import giving_up, outstanding_refund, reasons, sending, settling_outside, status_check
from checkout.remedies.status_check import NotAllowed
from config.lib import locks
from config.lib.admin import columns, confirmation, lists
from payments import money, operation_queue, restore_guard
from payments.admin import BookingAdmin, OperationAdmin
from payments.cause import cause_of_operator
from payments.discrepancies import definitions
from payments.discrepancies.admin import DiscrepancyAdmin
from payments.models import Booking, Discrepancy, Operation

log = structlog.get_logger("checkout.remedies")
Kind = Operation.Kind
NOTE = "How you know it"


def _settle_texts(operation: Operation) -> dict[str, Any]:
    if operation.purpose != Operation.Purpose.REIMBURSEMENT:
        return {
            "text": f"Do this only if the payer has the money. {_amount_of(operation)} is booked as paid to the payer."
            " The service stops trying this card. You can undo this on the booking’s page."
        }
    return {
        "text": f"Do this only if the lead got the money another way. {_amount_of(operation)} is booked as paid to the"
        " lead, and the share is shown as paid back. The service stops trying this card. You can undo this on the"
        " booking’s page."
    }


def _amount_of(operation: Operation) -> str:
    return money.display(operation.amount, operation.payment.currency)


def _send_texts(operation: Operation) -> dict[str, Any]:
    kind, amount = operation.get_kind_display(), _amount_of(operation)
    return {
        "text": f"The {kind.lower()} goes to the provider at once. {_sending_warning(operation)}",
        "button": f"Send {amount} again",
    }


def _sending_warning(operation: Operation) -> str:
    """Return a warning that the operation might not be sent, or that the provider might refuse it again."""
    if operation.ended_at is None:
        return "It is sent only if the provider says that it failed or never arrived."
    if reasons.reason_text(operation.reason) == reasons.CLOSED_TEXT:
        return "If the account is still closed, it is refused again."
    return "If the bank’s reason still holds, it is refused again."


SETTLE = confirmation.Question(
    title="Book as settled outside",
    text="Do this only if the payer has the money. The amount that the card is owed is booked as paid to the payer. The"
    " service stops trying this card. You can undo this on the booking’s page.",
    label="How it was settled",
    button="Book it as settled",
    title_for_one="Book {} as settled outside?",
    of_one=_settle_texts,
)
TAKE_BACK = confirmation.Question(
    title="Take the booking back",
    text="Do this only if the payer does not have the money. The card is owed the amount again.",
    label="Why it was wrong",
    button="Take it back",
    title_for_one="Take {} back?",
)
SEND = confirmation.Question(
    title="Send again",
    text="The operation goes to the provider at once.",
    label="Reason",
    button="Send it again",
    title_for_one="Send {} again?",
    of_one=_send_texts,
)
GIVE_UP = confirmation.Question(
    title="Give up the operation in doubt",
    text="Do this only if the provider vouches that the operation never arrived, or if someone captured another amount"
    " in the provider’s dashboard. The operation then counts as failed, and the order continues. If it is an"
    " authorization, its hold is released first.",
    label=NOTE,
    button="Give it up",
    title_for_one="Give up {}?",
)
BUSY = "A card operation is open. Try again in a moment."
RESTORED_TEXT = "the database was restored. Repair it first (manage.py reconcile --repair)."
# A remedy takes the row's primary key and the cause, and returns the checkout's uuid.
RemedyFunction = Callable[..., UUID]


def _provider_answer(operation: Operation) -> str:
    return status_check.describe_answer(status_check.look_up(operation))


class RemediesMixin:
    """Mixin for admin pages with remedies. It checks who may run a remedy, runs it, and logs and shows the result."""

    def has_remedy_permission(self: Any, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("payments.change_operation"))

    def remedy(
        self: Any, request: HttpRequest, rows: QuerySet[Any], run: RemedyFunction, *, success_text: str
    ) -> None:
        """Run a remedy on the selected row and log it. Show its result and whether the ledger is correct.

        `success_text` is the sentence that is shown and logged after a success.
        """
        row, cause = rows.get(), cause_of_operator(request)
        try:
            checkout_uuid = run(row.pk, cause=cause)
        except NotAllowed as refusal:
            self.message_user(request, f"Not done. {refusal}", messages.WARNING)
            return
        except restore_guard.ServiceClosed:
            self.message_user(request, f"Not done: {RESTORED_TEXT}", messages.WARNING)
            return
        except OperationalError as error:
            if not locks.is_locked(error):
                raise
            self.message_user(request, BUSY, messages.WARNING)
            return
        # The provider does not know this decision. If a restore loses it, this line shows it (rule restore.decisions).
        remedy = getattr(run, "func", run).__name__
        log.info(
            "operator remedy", remedy=remedy, row=str(row.pk), checkout=str(checkout_uuid), actor=cause.actor
        )
        self.log_change(request, row, success_text)
        self._show_result(request, checkout_uuid, success_text)

    def _show_result(self: Any, request: HttpRequest, checkout_uuid: UUID, success_text: str) -> None:
        order = Checkout.objects.values_list("merchant_order_id", flat=True).get(pk=checkout_uuid)
        breaches = ledger_proof.report_breaches_of(checkout_uuid)
        broken = "; ".join(breach.kind.sentence for breach in breaches)
        words = f"The ledger is broken: {broken}." if breaches else "The order’s ledger adds up."
        self.message_user(
            request, f"{order}: {success_text} {words}", messages.ERROR if breaches else messages.SUCCESS
        )


class RemediedOperationAdmin(RemediesMixin, OperationAdmin):
    """Admin pages for operations, with the remedies for stuck operations."""

    actions = ("settle_outside", "send_again", "give_up")
    short_names = {remedy.action: remedy.words for remedy in definitions.REMEDIES}

    def column(self, name: Any) -> Any:
        return self.reason_words if name == "reason" else super().column(name)

    @admin.display(description="reason")
    def reason_words(self, operation: Operation) -> str:
        return reasons.reason_text(operation.reason)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return outstanding_refund.with_refund_facts(super().get_queryset(request))

    def offers(self, action: str, row: Operation) -> bool:
        is_refused = outstanding_refund.was_refused(row) or outstanding_refund.was_returned(row)
        if row.purpose == Operation.Purpose.OUTSIDE or outstanding_refund.has_failed_as_a_whole(row):
            return False
        if action == "settle_outside":
            return row.kind == Kind.REFUND and is_refused
        if action == "send_again":
            return row.kind in (Kind.REFUND, Kind.VOID) and (is_refused or operation_queue.is_in_doubt(row))
        return row.kind in (Kind.AUTHORIZE, Kind.CAPTURE) and operation_queue.is_in_doubt(row)

    @admin.action(description="Book as settled outside: the card can’t take it", permissions=["remedy"])
    @confirmation.requires_confirmation(SETTLE, look_up=_provider_answer)
    def settle_outside(self, request: HttpRequest, rows: QuerySet[Operation], note: str) -> None:
        run = partial(settling_outside.settle_outside, note=note)
        self.remedy(request, rows, run, success_text=f"Settled outside: {note}.")

    @admin.action(description="Send again: it failed, or never arrived", permissions=["remedy"])
    @confirmation.requires_confirmation(SEND, look_up=_provider_answer)
    def send_again(self, request: HttpRequest, rows: QuerySet[Operation], note: str) -> None:
        self.remedy(request, rows, sending.send_again, success_text=f"Sent again: {note}.")

    @admin.action(description="Give up the operation: it never arrived", permissions=["remedy"])
    @confirmation.requires_confirmation(GIVE_UP, look_up=_provider_answer)
    def give_up(self, request: HttpRequest, rows: QuerySet[Operation], note: str) -> None:
        run = partial(giving_up.give_up, note=note)
        self.remedy(request, rows, run, success_text=f"Given up: {note}.")


class RemediedBookingAdmin(RemediesMixin, BookingAdmin):
    """Admin pages for bookings, with an action that reverses a booking of a refund that was settled outside."""

    actions = ("take_back",)

    def offers(self, action: str, row: Booking) -> bool:
        is_reversed = Booking.objects.filter(reverses=row).exists()
        return row.kind == Booking.Kind.SETTLED_OUTSIDE and row.reverses_id is None and not is_reversed

    @admin.action(description="Take the booking back", permissions=["remedy"])
    @confirmation.requires_confirmation(TAKE_BACK)
    def take_back(self, request: HttpRequest, rows: QuerySet[Booking], note: str) -> None:
        self.remedy(
            request,
            rows,
            partial(settling_outside.reverse_booking, note=note),
            success_text=f"Taken back: {note}.",
        )


class SearchableDiscrepancyAdmin(DiscrepancyAdmin):
    """Admin pages for discrepancies. Operators can also search for a discrepancy by the id of an order."""

    words = ("order", *DiscrepancyAdmin.words)

    @admin.display(description="order")
    def order(self, row: Discrepancy) -> str:
        about = (
            row.operation.payment.checkout_uuid if row.operation else row.facts.get("checkout", row.subject)
        )
        return columns.row_link(Checkout.objects.filter(pk=about).first())

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows that match the search term, and the rows about an order with that id."""
        rows, _ = super().get_search_results(request, queryset, search_term)
        term = search_term.replace("\0", "").strip()
        if not term:
            return rows, False
        orders = list(
            lists.find_exact_matches(Checkout, ["merchant_order_id__iexact"], term, ["merchant_order_id"])
        )
        is_about = Q(subject__in=orders) | Q(operation__payment__checkout_uuid__in=orders)
        return queryset.filter(Q(pk__in=rows.order_by().values("pk")) | is_about), False
