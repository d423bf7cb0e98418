from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from config.lib import clock
from config.lib.admin import ReadOnlyAdmin, link
from payments.models import Discrepancy, Merchant, Operation, Payment, Posting, Switch


@admin.register(Merchant)
class MerchantAdmin(admin.ModelAdmin):
    list_display = ("name", "id", "country", "created_at")
    search_fields = ("name", "id")
    readonly_fields = ("created_at",)

    def has_delete_permission(self, request: object, obj: object = None) -> bool:
        return False


@admin.register(Switch)
class SwitchAdmin(admin.ModelAdmin):
    """Stops and reopens; each change is in the log that Django keeps of the admin."""

    list_display = ("__str__", "is_stopped", "merchant", "reason", "changed_at")
    list_filter = ("is_stopped",)
    list_select_related = ("merchant",)
    autocomplete_fields = ("merchant",)


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "merchant",
        "amount",
        "currency",
        "status",
        "card_brand",
        "card_last4",
        "created_at",
    )
    list_filter = ("status",)
    list_select_related = ("merchant",)
    search_fields = ("=id", "=subject", "=card_last4")
    secret = ("card_token",)


@admin.register(Operation)
class OperationAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "kind",
        "state",
        "amount",
        "of_payment",
        "attempts",
        "next_attempt_at",
        "created_at",
    )
    list_filter = ("state", "kind")
    list_select_related = ("payment",)
    search_fields = ("=id", "=payment__subject", "=reference")
    secret = ("lease_token",)

    @admin.display(description="payment")
    def of_payment(self, operation: Operation) -> str:
        return link(operation.payment)


@admin.register(Posting)
class PostingAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "merchant", "account", "amount", "currency", "checkout_uuid", "transaction")
    list_filter = ("account", "currency")
    list_select_related = ("merchant",)
    search_fields = ("=checkout_uuid", "=transaction")


@admin.register(Discrepancy)
class DiscrepancyAdmin(ReadOnlyAdmin):
    """A person looks, notes what came of it, and closes it; what comes again is then told again."""

    actions = ("close",)
    list_display = ("kind", "merchant", "of_operation", "created_at", "closed_at")
    list_filter = ("kind", "closed_at")
    list_select_related = ("merchant", "operation")

    @admin.display(description="operation")
    def of_operation(self, discrepancy: Discrepancy) -> str:
        return link(discrepancy.operation)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("payments.change_discrepancy")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [name for name in self.get_fields(request, obj) if name != "note"]

    @admin.action(description="Close: a person has set it right", permissions=["change"])
    def close(self, request: HttpRequest, rows: QuerySet[Discrepancy]) -> None:
        for discrepancy in rows.filter(closed_at=None):
            discrepancy.closed_at = clock.now()
            discrepancy.save(update_fields=["closed_at"])
            self.log_change(request, discrepancy, "Closed.")
