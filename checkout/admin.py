"""Admin pages for orders: checkouts, items, history, refunds, shares, API calls and customers.

Operators can cancel a checkout on these pages.
"""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin, messages
from django.db import OperationalError
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join

from checkout import cancellations, current_checkouts, settling, states
from checkout.models import (
    ApiCall,
    Bill,
    Change,
    Checkout,
    Customer,
    GroupLink,
    IdempotencyKey,
    LeadNotification,
    MerchantCustomer,
    PaymentRequest,
    Prefill,
    ProofRun,
    Refund,
    ReplacedLink,
)
from checkout.remedies import admin as remedies_admin
from checkout.remedies import reasons
from checkout.states import Status, VoidReason
from config.lib import locks
from config.lib.admin import columns, confirmation, lists
from config.lib.admin.readonly import ReadOnlyAdmin
from payments import money, restore_guard
from payments.cause import Cause, cause_of_operator
from payments.models import Booking, Discrepancy, Dispute, Operation
from payments.money_columns import MoneyAdmin

NOTIFIED_TEXT = "{} is notified. This cannot be undone."
UNPAID_TEXT = "The order ends unpaid, and no money is held."


def _texts_of_cancellation(checkout: Checkout) -> dict[str, Any]:
    words, notice = {"button": "Yes, cancel it"}, NOTIFIED_TEXT.format(checkout.merchant)
    if checkout.status == Status.CREATED:
        words["text"] = f"{UNPAID_TEXT} {notice}"
    if checkout.status == Status.AUTHORIZED and checkout.payment:
        amount = money.display(checkout.amount, checkout.currency)
        card = f"{checkout.payment.card_brand} {checkout.payment.card_last4}".strip()
        words["title"] = f"Cancel {checkout.merchant_order_id} and release {amount}?"
        words["button"] = f"Release {amount}"
        words["text"] = (
            f"The hold on {card or 'the card'} ends. No money is taken. {notice}\n\nIf {checkout.merchant} captures"
            f" first, the order is not cancelled.{_hold_end_text(checkout)}"
        )
    return words


def _hold_end_text(checkout: Checkout) -> str:
    at = checkout.capture_before
    return f" Without a cancellation, the hold ends on {at.day} {at:%b, %H:%M:%S} UTC." if at else ""


CANCEL = confirmation.Question(
    title="Cancel checkouts",
    text="A hold is released, and the merchant is notified. An unpaid order ends. A paid order does not change: its"
    " merchant can refund it.",
    label="Reason",
    button="Yes, cancel",
    title_for_one="Cancel {}?",
    of_one=_texts_of_cancellation,
)
admin.site.register(Operation, remedies_admin.RemediedOperationAdmin)
admin.site.register(Booking, remedies_admin.RemediedBookingAdmin)
admin.site.register(Discrepancy, remedies_admin.SearchableDiscrepancyAdmin)

EMPTY = (None, "")
BUSY = "a card operation is open. Try again in a moment."
REFUSALS = {
    Status.CAPTURED: "it is paid. Its merchant refunds it instead.",
    Status.REFUNDING: "it is being refunded.",
    Status.REFUNDED: "it has been refunded.",
    Status.EXPIRED: "it has expired, and no money is held.",
}


class ProblemFilter(admin.SimpleListFilter):
    """Filter for orders with a problem that their status does not show.

    The option "In doubt" searches all open operations. The options "Disputed" and "Refund failed" search only the
    newest lists.NEWEST_SEARCHED disputes or refunds.
    """

    title = "needs attention"
    parameter_name = "trouble"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("unclear", "In doubt"), ("disputed", "Disputed"), ("refund_failed", "Refund failed")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Checkout]) -> QuerySet[Checkout]:
        found = {
            "unclear": _checkouts_in_doubt,
            "disputed": _disputed_checkouts,
            "refund_failed": _checkouts_with_failed_refund,
        }
        if self.value() not in found:
            return queryset
        return queryset.filter(pk__in=list(found[str(self.value())]()[: lists.MAXIMUM]))


def _checkouts_in_doubt() -> QuerySet[Any, Any]:
    states = (Operation.State.IN_FLIGHT, Operation.State.UNKNOWN)
    rows = Operation.objects.filter(ended_at=None, state__in=states)
    return rows.order_by("-pk").values_list("payment__checkout_uuid", flat=True)


def _disputed_checkouts() -> QuerySet[Any, Any]:
    newest = Dispute.objects.order_by("-pk").values("pk")[: lists.NEWEST_SEARCHED]
    rows = Dispute.objects.filter(pk__in=newest, status=Dispute.Status.OPEN)
    return rows.order_by("-pk").values_list("checkout_uuid", flat=True)


def _checkouts_with_failed_refund() -> QuerySet[Any, Any]:
    """Return the orders that have a failed refund, and no pending or settled refund."""
    tried_again = Refund.objects.filter(checkout=OuterRef("checkout"), status__in=["pending", "settled"])
    newest = Refund.objects.order_by("-pk").values("pk")[: lists.NEWEST_SEARCHED]
    rows = Refund.objects.filter(~Exists(tried_again), pk__in=newest, status=Refund.Status.FAILED)
    return rows.order_by("-pk").values_list("checkout", flat=True)


@admin.register(Checkout)
class CheckoutAdmin(MoneyAdmin):
    """Admin pages for checkouts. The page for one checkout shows everything that belongs to it."""

    actions = ("cancel",)
    list_display = ("merchant_order_id", "merchant", "status", "amount", "created_at", "id")
    list_filter = ("status", ProblemFilter)
    searched_by = "Order or checkout ID"
    search_help_text = "Enter the whole ID."
    search_fields = ("id", "merchant_order_id__iexact")
    of_each_merchant = ("merchant_order_id",)
    merchants_order = ("-created_at", "-pk")
    # There is no index on the column `payment`, so no other admin page can list orders by payment. The page for
    # a payment links to its order instead.
    unindexed = ("payment",)
    amounts = ("amount", "refunded_amount")
    panels = (("checkout.change", "checkout"),)
    counts_records = True
    titles: Mapping[str, str] = {
        "created_at": "made",
        "authorized_at": "held",
        "capture_before": "hold ends",
        "void_reason": "why voided",
    }

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the checkouts. Each row contains the time of the query, because the pages show this time."""
        return current_checkouts.with_read_at(settling.with_needs_accounts(super().get_queryset(request)))

    def get_fields(self, request: HttpRequest, obj: Checkout | None = None) -> Any:
        """Return the fields that the page shows. Empty fields are hidden."""
        empty = (
            {field.name for field in self.opts.fields if field.value_from_object(obj) in EMPTY}
            if obj
            else set()
        )
        return [
            column for column in super().get_fields(request, obj) if columns.column_name(column) not in empty
        ]

    def called(self, row: Checkout) -> str:
        return row.merchant_order_id

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("checkout.change_checkout")

    def offers(self, action: str, row: Checkout) -> bool:
        return "cancel" in states.allowed_actions(row.status)

    @admin.action(description="Cancel", permissions=["cancel"])
    @confirmation.requires_confirmation(CANCEL)
    def cancel(self, request: HttpRequest, rows: QuerySet[Checkout], reason: str) -> None:
        for checkout in rows:
            refusal = _cancel_checkout(checkout, cause_of_operator(request))
            if refusal:
                text = f"{checkout.merchant_order_id} is not cancelled: {refusal}"
                self.message_user(request, text, messages.WARNING)
                continue
            self.log_change(request, checkout, f"Cancelled: {reason}")
            amount = money.display(checkout.amount, checkout.currency)
            was_held = checkout.status == Status.AUTHORIZED
            happened = f"{amount} is being released." if was_held else "No money was held."
            self.message_user(request, f"{checkout.merchant_order_id} is cancelled. {happened}")


def _cancel_checkout(checkout: Checkout, cause: Cause) -> str:
    """Cancel a checkout. Return the reason why it could not be cancelled, or "" after success."""
    try:
        ended = cancellations.cancel(checkout.merchant, checkout.pk, cause=cause)
    except cancellations.NotCancellable as refusal:
        return REFUSALS[Status(refusal.status)]
    except states.OperationInProgress:
        return BUSY
    except restore_guard.ServiceClosed:
        return remedies_admin.RESTORED_TEXT
    except OperationalError as error:
        if locks.is_locked(error):
            return BUSY
        raise
    if checkout.status == Status.VOIDED:
        return "it was voided before."
    return "its hold had lapsed." if ended.void_reason == VoidReason.AUTH_EXPIRED else ""


@admin.register(Bill)
class BillAdmin(ReadOnlyAdmin):
    list_display = ("checkout", "__str__")
    search_fields = ("checkout",)
    list_select_related = ("checkout",)

    def column(self, name: Any) -> Any:
        return self.items if name == "lines" else super().column(name)

    @admin.display(description="items")
    def items(self, bill: Bill) -> str:
        """Return one line of text for each item, for example "4 × £22.50 Standing ticket"."""
        currency = bill.checkout.currency
        lines = [(it.quantity, money.display(it.unit_price, currency), it.name) for it in bill.checkout.bill]
        return format_html_join("", "<p>{} × {} {}</p>", lines)


@admin.register(Change)
class ChangeAdmin(ReadOnlyAdmin):
    list_display = (
        columns.time_column("created_at", "when"),
        "origin",
        "to",
        "actor",
        "request",
        "checkout",
    )
    search_fields = ("id", "checkout")

    @admin.display(description="request")
    def request(self, change: Change) -> str:
        whole = change.request_id
        return format_html('<span title="{}">…{}</span>', whole, whole[-6:]) if whole else columns.EMPTY_CELL


@admin.register(Refund)
class RefundAdmin(MoneyAdmin):
    list_display = (
        "merchant_refund_ref",
        "merchant",
        "status",
        "amount",
        "created_at",
        "settled_at",
        "checkout",
    )
    list_filter = ("status",)
    search_fields = ("id", "merchant_refund_ref", "checkout")
    of_each_merchant = ("merchant_refund_ref",)
    currency = "checkout.currency"
    panels = (("payments.operation", "refund_uuid"),)

    def column(self, name: Any) -> Any:
        return self.failure_words if name == "failure_reason" else super().column(name)

    @admin.display(description="why it failed")
    def failure_words(self, refund: Refund) -> str:
        return reasons.reason_text(refund.failure_reason) or "The bank gave no reason."


class AnswerFilter(admin.SimpleListFilter):
    """Filter for the newest API calls by the result: done, refused or failed."""

    title = f"answer, among the newest {lists.NEWEST_SEARCHED:,}"
    parameter_name = "answer"
    KINDS = {"2": "Done", "4": "Refused", "5": "Failed"}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(self.KINDS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiCall]) -> QuerySet[ApiCall]:
        chosen = self.value()
        if chosen not in self.KINDS:
            return queryset
        found = lists.limit_to_newest(request, queryset)
        return found.filter(status__gte=int(chosen) * 100, status__lt=int(chosen) * 100 + 100)


@admin.register(ApiCall)
class ApiCallAdmin(ReadOnlyAdmin):
    """Admin pages for API calls. They show the status of each response."""

    list_display = ("created_at", "merchant", "method", "path", "status", "error_code")
    list_filter = (AnswerFilter,)
    search_fields = ("id", "request_id", "checkout_uuid")
    of_each_merchant = ("request_id", "checkout_uuid")
    references = {"checkout_uuid": "checkout.checkout", "client_uuid": "portal.apiclient"}
    titles: Mapping[str, str] = {"client_uuid": "API client", "status": "answer"}


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnlyAdmin):
    """Admin pages for the idempotency keys of the last day. They hide the stored responses, which are private."""

    list_display = ("created_at", "merchant", "key", "checkout_uuid", "status")
    search_fields = ("id", "key")
    of_each_merchant = ("key",)
    references = {"checkout_uuid": "checkout.checkout"}
    uncounted = ("checkout_uuid",)
    titles: Mapping[str, str] = {"status": "answer"}
    secret = ("body", "request_digest")


@admin.register(ProofRun)
class ProofRunAdmin(ReadOnlyAdmin):
    """Admin pages for runs of the ledger proof of all checkouts. The pages show progress and breaches."""

    list_display = ("begun_at", "ended_at", "checkout_count", "breach_count", "is_scheduled")


@admin.register(Customer)
class CustomerAdmin(ReadOnlyAdmin):
    """Admin pages for customers. They show only the last digits of a phone number."""

    list_display = ("id", "__str__", "created_at")
    # A search by phone number is possible only on another admin page, which logs each search.
    search_fields = ("id",)
    secret = ("phone", "name")
    extra_columns = ("__str__",)


@admin.register(MerchantCustomer)
class MerchantCustomerAdmin(ReadOnlyAdmin):
    list_display = ("id", "merchant", "customer")
    search_fields = ("id", "customer")


@admin.register(GroupLink)
class GroupLinkAdmin(ReadOnlyAdmin):
    """Admin pages for group links. They never show the link, because anyone who has it can take a share."""

    list_display = ("checkout", "created_at")
    search_fields = ("checkout",)
    secret = ("token", "token_digest")


@admin.register(ReplacedLink)
class ReplacedLinkAdmin(ReadOnlyAdmin):
    list_display = ("share", "replaced_at")
    search_fields = ("share",)
    secret = ("token_digest",)


@admin.register(LeadNotification)
class LeadNotificationAdmin(ReadOnlyAdmin):
    list_display = ("id", "checkout", "kind", "due_at", "ended_at")
    list_filter = ("kind",)
    search_fields = ("id", "checkout")


@admin.register(Prefill)
class PrefillAdmin(ReadOnlyAdmin):
    """Admin pages for prefills. They show only the last digits of a phone number."""

    list_display = ("checkout", "__str__", "locale")
    search_fields = ("checkout",)
    secret = ("phone", "name")
    extra_columns = ("__str__",)


@admin.register(PaymentRequest)
class PaymentRequestAdmin(MoneyAdmin):
    """Admin pages for shares, including replaced shares. They never show a pay link, because anyone could use it."""

    list_display = ("id", "position", "checkout", "amount", "status", "expires_at", "paid_at")
    list_filter = ("status",)
    search_fields = ("id", "checkout")
    currency = "checkout.currency"
    panels = (("payments.payment", "subject"), ("payments.operation", "share_uuid"))
    secret = ("token", "token_digest", "name", "phone", "claim_digest", "claim_name")

    def get_queryset(self, request: HttpRequest) -> QuerySet[PaymentRequest]:
        rows = PaymentRequest.every.select_related("checkout__merchant", "mate", "payment")
        return rows.order_by(*self.get_ordering(request))
