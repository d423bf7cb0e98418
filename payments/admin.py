"""Admin pages for payments, operations, the ledger and disputes."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest

from config.lib.admin import columns
from config.lib.admin.readonly import ReadOnlyAdmin
from payments import disputes, money, planning
from payments.merchants import admin as merchants_admin
from payments.models import (
    BalanceEntry,
    DatabaseMark,
    Dispute,
    FormerAccount,
    Inquiry,
    LastBackup,
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

# What each kind of operation on a payment is for. The label of the purpose `payment` cannot say this, because it is the
# same for all kinds.
PURPOSES: Mapping[str, str] = {
    Operation.Kind.AUTHORIZE: "To hold the amount on the card",
    Operation.Kind.CAPTURE: "To charge the card",
    Operation.Kind.VOID: "To release the hold on the card",
    Operation.Kind.REFUND: "To pay the amount back to the card",
}

admin.site.register(Merchant, merchants_admin.MerchantAdmin)
admin.site.register(Switch, merchants_admin.SwitchAdmin)


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
    search_help_text = "Enter a whole ID, or the last four digits."
    of_each_merchant = ("card_last4",)
    references = {"checkout_uuid": "checkout.checkout"}
    linked_by = ("subject",)
    panels = (
        ("payments.operation", "payment"),
        ("payments.movement", "payment"),
        ("payments.dispute", "payment"),
    )
    secret = ("card_token", "return_url")

    def column(self, name: Any) -> Any:
        return self.decline_words if name == "decline_reason" else super().column(name)

    @admin.display(description="why declined")
    def decline_words(self, payment: Payment) -> str:
        return f"{payment.decline_reason.replace('_', ' ').capitalize()}."


class OperationAdmin(MoneyAdmin):
    """Admin pages for operations. A subclass in checkout/remedies/admin.py adds the actions for stuck operations."""

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
    titles: Mapping[str, str] = {"kind": "what"}
    explanations: Mapping[str, str] = {
        "first_sent_at": "When the first call to the provider was sent.",
        "last_sent_at": "No call with this key is sent after this time.",
        "created_at": "",
    }
    panels = (
        ("payments.movement", "operation"),
        ("payments.booking", "operation"),
        ("payments.discrepancy", "operation"),
    )
    secret = ("lease_token", "action_url")
    extra_columns = ("merchant", "checkout")

    def called(self, row: Operation) -> str:
        return (
            f"the {str(row.get_kind_display()).lower()} of {money.display(row.amount, row.payment.currency)}"
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return planning.with_first_sending(super().get_queryset(request))

    def column(self, name: Any) -> Any:
        columns_in_words = {"purpose": self.purpose_words, "attempts": self.calls}
        return columns_in_words.get(name) or super().column(name)

    @admin.display(description="calls to the provider")
    def calls(self, operation: Any) -> str:
        """Return the number of calls. After a new key, the calls under the earlier keys count too."""
        own, under_all_keys = operation.attempts, operation.all_attempts
        if own == under_all_keys:
            return str(own)
        return f"{under_all_keys} under all keys, {own} under the current one"

    @admin.display(description="purpose")
    def purpose_words(self, operation: Operation) -> str:
        is_of_payment = operation.purpose == Operation.Purpose.PAYMENT
        return PURPOSES[operation.kind] if is_of_payment else str(operation.get_purpose_display())

    @admin.display(description="merchant")
    def merchant(self, operation: Operation) -> str:
        return columns.row_link(operation.payment.merchant)

    @admin.display(description="checkout")
    def checkout(self, operation: Operation) -> str:
        return columns.key_link("checkout.checkout", operation.payment.checkout_uuid)


@admin.register(Posting)
class PostingAdmin(MoneyAdmin):
    list_display = ("id", "merchant", "account", "amount", "checkout_uuid", "transaction", "created_at")
    listed_as = (
        "Newest first. A minus means that the service owes the account more, "
        "or the account owes the service less"
    )
    list_filter = ("account",)
    search_fields = ("checkout_uuid", "transaction")
    references = {"checkout_uuid": "checkout.checkout"}
    linked_by = ("transaction",)


@admin.register(BalanceEntry)
class BalanceEntryAdmin(MoneyAdmin):
    """Admin pages for the lines of the provider's balances: fees and payouts. They are not in the ledger."""

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
    """Admin pages for movements of money at the provider."""

    list_display = ("kind", "amount", "bearer", "occurred_at", "payment", "checkout_uuid")
    list_filter = ("kind",)
    list_select_related = ("payment__merchant",)
    search_fields = ("id", "payment", "operation", "dispute", "checkout_uuid", "reference")
    currency = "payment.currency"
    listed_as = "Last recorded first"
    explanations: Mapping[str, str] = {
        "operation": "The operation that caused it, if it is known.",
        "bearer": "Who pays or receives the amount.",
    }
    references = {"checkout_uuid": "checkout.checkout"}
    panels = (("payments.posting", "transaction"),)


class BookingAdmin(MoneyAdmin):
    """Admin pages for bookings, which do not move money at the provider.

    A booking records that an amount was settled outside, or that it is no longer owed to a lead.
    """

    list_display = ("id", "kind", "amount", "payment", "actor", "created_at", "checkout_uuid")
    list_filter = ("kind",)
    list_select_related = ("payment__merchant",)
    search_fields = ("id", "payment", "operation", "checkout_uuid", "share_uuid")
    currency = "payment.currency"
    references = {"checkout_uuid": "checkout.checkout"}
    panels = (("payments.posting", "transaction"),)


@admin.register(Dispute)
class DisputeAdmin(MoneyAdmin):
    """Admin pages for disputes. Open disputes come first, starting with the nearest deadline.

    The decided disputes follow, starting with the one that was decided last.
    """

    list_display = ("amount", "status", "reason", "opened_at", "respond_by", "payment", "checkout_uuid")
    list_filter = ("status",)
    list_select_related = ("payment__merchant",)
    # An open dispute has no `closed_at`. The index `dispute_urgency` has the same order.
    ordering = (  # type: ignore[assignment]  # the stubs allow no expressions in a tuple
        F("closed_at").desc(nulls_first=True),
        F("respond_by").asc(nulls_last=True),
        "-pk",
    )
    listed_as = "Open ones first, by the deadline for evidence"
    titles: Mapping[str, str] = {
        "respond_by": "evidence until",
        "created_at": "recorded",
        "closed_at": "decided",
    }
    search_fields = ("id", "reference", "checkout_uuid")
    currency = "payment.currency"
    references = {"checkout_uuid": "checkout.checkout"}
    panels = (("payments.movement", "dispute"),)

    def column(self, name: Any) -> Any:
        return self.reason_words if name == "reason" else super().column(name)

    @admin.display(description="reason")
    def reason_words(self, dispute: Dispute) -> str:
        return disputes.reason_in_words(dispute)


@admin.register(DatabaseMark)
class DatabaseMarkAdmin(ReadOnlyAdmin):
    """Admin pages that show the server on which the database was last opened."""

    list_display = ("server", "word", "opened_at")


@admin.register(FormerAccount)
class FormerAccountAdmin(ReadOnlyAdmin):
    """Admin pages for former accounts of merchants at the provider. Earlier payments are still in these accounts."""

    is_small = True
    list_display = ("merchant", "provider_account")


@admin.register(Logo)
class LogoAdmin(ReadOnlyAdmin):
    """Admin pages for merchants' logos. Merchants change them in the portal."""

    is_small = True
    list_display = ("merchant", "version", "changed_at")
    exclude = ("mark", "card")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).defer(*self.exclude)
        return rows


@admin.register(LedgerSum)
class LedgerSumAdmin(MoneyAdmin):
    """Admin pages for the sums of the ledger's closed months and days."""

    list_display = ("begin", "end", "merchant", "account", "amount")
    search_fields = ("id",)
    amounts = ("amount",)


@admin.register(LedgerClosing)
class LedgerClosingAdmin(ReadOnlyAdmin):
    """Admin pages that show until when the ledger is closed and summed."""

    is_small = True
    list_display = ("closed_until", "summed_until")


@admin.register(Reconciled)
class ReconciledAdmin(ReadOnlyAdmin):
    """Admin pages that show until when the provider's books were read."""

    list_display = ("until",)


@admin.register(LastBackup)
class LastBackupAdmin(ReadOnlyAdmin):
    """Admin pages that show when a back-up was last made and verified."""

    list_display = ("made_at",)


@admin.register(Inquiry)
class InquiryAdmin(ReadOnlyAdmin):
    """Admin pages for the payments that must be read at the provider."""

    list_display = ("payment", "due_at")
