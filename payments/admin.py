"""The admin of payments: merchants, operators' stops, payments, operations, the ledger, disputes."""

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db import models
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.module_loading import import_string
from django.utils.text import capfirst

from config.lib.admin import columns, confirmation, lists
from config.lib.admin.readonly import ChangesForm, OperatorAdmin, ReadOnlyAdmin
from payments import money, operator_stops
from payments.models import (
    BalanceEntry,
    DatabaseMark,
    Dispute,
    FormerAccount,
    Inquiry,
    LedgerClosing,
    LedgerSum,
    Logo,
    Merchant,
    Movement,
    Operation,
    Payment,
    Posting,
    Reconciled,
    Switch,
)
from payments.money_columns import MoneyAdmin
from payments.settings_form import SettingsForm

SUSPEND = confirmation.Question(
    title="Suspend merchants",
    text="Within five seconds, they can no longer create orders, be paid or capture. Holds lapse and are released."
    " Reads, cancels and refunds still work, and operations in doubt are finished.",
    label="Reason",
    button="Yes, suspend",
    one="Suspend {}?",
    of_one=lambda merchant: {
        "text": f"Within five seconds, {merchant} can no longer create orders, be paid or capture. Holds lapse and are"
        " released. Reads, cancels and refunds still work, and operations in doubt are finished.",
        "button": "Yes, suspend it",
    },
)
RESUME = confirmation.Question(
    title="Resume merchants",
    text="Within five seconds, they can create orders, be paid and capture again, unless all merchants are suspended.",
    label="Reason",
    button="Yes, resume",
    one="Resume {}?",
    of_one=lambda merchant: {
        "text": f"Within five seconds, {merchant} can create orders, be paid and capture again, unless all merchants"
        " are suspended.",
        "button": "Yes, resume it",
    },
)
SUSPENSION = lists.state_filter({"open": Q(is_suspended=False), "suspended": Q(is_suspended=True)})


class MerchantForm(ChangesForm, SettingsForm):
    """The settings that an operator may change, with the same checks as in the merchant's portal.

    Rule operator.settings.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            column: Any = Merchant._meta.get_field(name)
            field.label, field.help_text = capfirst(column.verbose_name), column.help_text


def _stops_of_row() -> QuerySet[Switch]:
    """Return a subquery for the active stops of the merchant in the outer query's row."""
    return Switch.objects.filter(merchant=OuterRef("pk"), is_stopped=True)


@admin.register(Merchant)
class MerchantAdmin(OperatorAdmin):
    """Merchants. They are suspended and never deleted, so that the history of their money stays."""

    form = MerchantForm
    actions = ("suspend", "resume")
    listed_as = "Suspended first, then by name"
    searched_by = "Name or uuid"
    search_help_text = "Enter any part of the name or uuid."
    is_small = True
    list_display = ("name", "id", "country", "created_at")
    list_filter = (SUSPENSION, "country", "opt_in_enabled")
    search_fields = ("name", "id")
    readonly_fields = ("id", "created_at")
    formfield_overrides = {models.URLField: {"assume_scheme": "https"}}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        stopped = _stops_of_row()
        rows: QuerySet[Any] = (
            super()
            .get_queryset(request)
            .annotate(
                is_suspended=Exists(stopped),
                stop_reason=Subquery(stopped.values("reason")[:1]),
                are_all_stopped=Exists(Switch.objects.filter(merchant=None, is_stopped=True)),
            )
        )
        return rows

    def get_ordering(self, request: HttpRequest) -> Any:
        """Return the order: suspended merchants first, then by name."""
        return (Exists(_stops_of_row()).desc(), "name", "pk")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        own = {"id", "brand_version", "logo_version", "logo_width"}
        return ["id", *(field.name for field in self.opts.fields if field.name not in own)]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the read-only fields. Only superusers may change a merchant's account at the provider."""
        is_superuser = getattr(request.user, "is_superuser", False)
        return self.readonly_fields if is_superuser else (*self.readonly_fields, "provider_account")

    def offers(self, action: str, row: Any) -> bool:
        return action == ("resume" if row.is_suspended else "suspend")

    def save_model(self, request: HttpRequest, obj: Merchant, form: Any, change: bool) -> None:
        """Save the merchant. If the colour changes, the merchant's style sheet gets a new address."""
        if change and "brand_colour" in form.changed_data:
            obj.brand_version += 1
        super().save_model(request, obj, form, change)
        if change and form.changed_data:
            import_string(settings.OPERATORS_RECORDED_BY)(request, obj, form.changed_data)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_suspend_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("payments.change_switch")

    @admin.action(description="Suspend", permissions=["suspend"])
    @confirmation.requires_confirmation(SUSPEND)
    def suspend(self, request: HttpRequest, rows: QuerySet[Merchant], reason: str) -> None:
        for merchant in rows:
            switch = operator_stops.suspend(merchant, reason=reason)
            self._show_result(request, merchant, switch, f"Suspended: {reason}", "was suspended already.")

    @admin.action(description="Resume", permissions=["suspend"])
    @confirmation.requires_confirmation(RESUME)
    def resume(self, request: HttpRequest, rows: QuerySet[Merchant], reason: str) -> None:
        for merchant in rows:
            switch = operator_stops.resume(merchant, reason=reason)
            self._show_result(request, merchant, switch, f"Resumed: {reason}", "was not suspended.")

    def _show_result(
        self, request: HttpRequest, merchant: Merchant, switch: Switch | None, done: str, otherwise: str
    ) -> None:
        if switch is None:
            self.message_user(request, f"{merchant} {otherwise}", messages.WARNING)
            return
        self.log_change(request, merchant, done)
        self.log_change(request, switch, done)
        self.message_user(request, f"{merchant} is {'suspended' if switch.is_stopped else 'open again'}.")


@admin.register(Switch)
class SwitchAdmin(OperatorAdmin):
    """Operators' stops of merchants. Django's admin log records each change."""

    is_small = True
    list_display = ("__str__", "is_stopped", "merchant", "reason", "changed_at")
    list_filter = ("is_stopped",)
    search_fields = ("merchant__name", "reason")
    autocomplete_fields = ("merchant",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Payment)
class PaymentAdmin(MoneyAdmin):
    list_display = (
        "id",
        "merchant",
        "checkout_uuid",
        "amount",
        "status",
        "card_brand",
        "card_last4",
        "created_at",
    )
    list_filter = ("status",)
    search_fields = ("id", "subject", "checkout_uuid", "card_last4")
    of_each_merchant = ("card_last4",)
    references = {"checkout_uuid": "checkout.checkout"}
    linked_by = ("subject",)
    panels = (
        ("payments.operation", "payment"),
        ("payments.movement", "payment"),
        ("payments.dispute", "payment"),
    )
    secret = ("card_token", "return_url")


class OperationAdmin(MoneyAdmin):
    """Operations. checkout/admin.py registers this admin with the actions for an operation that is stuck."""

    list_display = (
        "id",
        "kind",
        "state",
        "amount",
        "payment",
        "attempts",
        "next_attempt_at",
        "created_at",
    )
    list_filter = ("state", "kind")
    list_select_related = ("payment__merchant",)
    search_fields = (
        "id",
        "payment",
        "payment__subject",
        "payment__checkout_uuid",
        "refund_uuid",
        "share_uuid",
    )
    linked_by = ("payment__checkout_uuid",)
    currency = "payment.currency"
    references = {"refund_uuid": "checkout.refund", "share_uuid": "checkout.paymentrequest"}
    panels = (
        ("payments.movement", "operation"),
        ("payments.booking", "operation"),
        ("payments.discrepancy", "operation"),
    )
    secret = ("lease_token", "action_url")
    also = ("merchant", "checkout")

    def called(self, row: Operation) -> str:
        return (
            f"the {str(row.get_kind_display()).lower()} of {money.display(row.amount, row.payment.currency)}"
        )

    @admin.display(description="merchant")
    def merchant(self, operation: Operation) -> str:
        return columns.row_link(operation.payment.merchant)

    @admin.display(description="checkout")
    def checkout(self, operation: Operation) -> str:
        return columns.key_link("checkout.checkout", operation.payment.checkout_uuid)


@admin.register(Posting)
class PostingAdmin(MoneyAdmin):
    list_display = ("id", "merchant", "account", "amount", "checkout_uuid", "transaction", "created_at")
    list_filter = ("account",)
    search_fields = ("checkout_uuid", "transaction")
    references = {"checkout_uuid": "checkout.checkout"}
    linked_by = ("transaction",)


@admin.register(BalanceEntry)
class BalanceEntryAdmin(MoneyAdmin):
    """Lines of the balances that the provider keeps: fees and payouts. They are not in the ledger."""

    list_display = (
        "id",
        "merchant",
        "kind",
        "amount",
        "fee",
        "made_at",
        "payout",
        "checkout_uuid",
        "operation",
    )
    list_filter = ("kind",)
    search_fields = ("checkout_uuid", "operation", "reference", "payout")
    amounts = ("amount", "fee")
    references = {"checkout_uuid": "checkout.checkout", "operation": "payments.operation"}
    uncounted = ("checkout_uuid",)


@admin.register(Movement)
class MovementAdmin(MoneyAdmin):
    """Movements of money at the provider."""

    list_display = ("id", "kind", "amount", "payment", "bearer", "occurred_at", "checkout_uuid")
    list_filter = ("kind",)
    list_select_related = ("payment__merchant",)
    search_fields = ("id", "payment", "operation", "dispute", "checkout_uuid", "reference")
    currency = "payment.currency"
    references = {"checkout_uuid": "checkout.checkout"}
    panels = (("payments.posting", "transaction"),)


class BookingAdmin(MoneyAdmin):
    """Bookings that moved no money at the provider: settled outside, or no longer owed to a lead."""

    list_display = ("id", "kind", "amount", "payment", "actor", "created_at", "checkout_uuid")
    list_filter = ("kind",)
    list_select_related = ("payment__merchant",)
    search_fields = ("id", "payment", "operation", "checkout_uuid", "share_uuid")
    currency = "payment.currency"
    references = {"checkout_uuid": "checkout.checkout"}
    panels = (("payments.posting", "transaction"),)


@admin.register(Dispute)
class DisputeAdmin(MoneyAdmin):
    list_display = ("id", "payment", "amount", "reason", "status", "opened_at", "respond_by", "checkout_uuid")
    list_filter = ("status",)
    search_fields = ("id", "reference", "checkout_uuid")
    currency = "payment.currency"
    references = {"checkout_uuid": "checkout.checkout"}
    panels = (("payments.movement", "dispute"),)


@admin.register(DatabaseMark)
class DatabaseMarkAdmin(ReadOnlyAdmin):
    """The server on which the database was last opened."""

    list_display = ("server", "word", "opened_at")


@admin.register(FormerAccount)
class FormerAccountAdmin(ReadOnlyAdmin):
    """The accounts at the provider that hold merchants' earlier payments."""

    is_small = True
    list_display = ("merchant", "provider_account")


@admin.register(Logo)
class LogoAdmin(ReadOnlyAdmin):
    """Merchants' logos, which merchants change in the portal."""

    is_small = True
    list_display = ("merchant", "version", "changed_at")
    exclude = ("mark", "card")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).defer(*self.exclude)
        return rows


@admin.register(LedgerSum)
class LedgerSumAdmin(MoneyAdmin):
    """The sums of the ledger's closed months and days."""

    list_display = ("begin", "end", "merchant", "account", "amount")
    search_fields = ("id",)
    amounts = ("amount",)


@admin.register(LedgerClosing)
class LedgerClosingAdmin(ReadOnlyAdmin):
    """The times until which the ledger is closed and summed."""

    is_small = True
    list_display = ("closed_until", "summed_until")


@admin.register(Reconciled)
class ReconciledAdmin(ReadOnlyAdmin):
    """The time until which the provider's books were read."""

    list_display = ("until",)


@admin.register(Inquiry)
class InquiryAdmin(ReadOnlyAdmin):
    """The payments that must be read at the provider."""

    list_display = ("payment", "due_at")
