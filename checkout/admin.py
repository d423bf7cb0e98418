from django.contrib import admin

from checkout.models import (
    ApiCall,
    Change,
    Checkout,
    Customer,
    Item,
    MerchantCustomer,
    PaymentRequest,
    Refund,
)
from config.lib.admin import ReadOnlyAdmin, link


class ReadOnlyInline(admin.TabularInline):
    """Parts of a checkout, beside it."""

    extra = 0
    can_delete = False

    def has_add_permission(self, request: object, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: object, obj: object = None) -> bool:
        return False


class ItemInline(ReadOnlyInline):
    model = Item


class RefundInline(ReadOnlyInline):
    model = Refund


class ChangeInline(ReadOnlyInline):
    model = Change


@admin.register(Checkout)
class CheckoutAdmin(ReadOnlyAdmin):
    list_display = ("id", "merchant", "merchant_order_id", "status", "amount", "currency", "created_at")
    list_filter = ("status", "currency")
    list_select_related = ("merchant",)
    search_fields = ("=id", "=merchant_order_id")
    inlines = (ItemInline, RefundInline, ChangeInline)


@admin.register(Refund)
class RefundAdmin(ReadOnlyAdmin):
    list_display = ("merchant_refund_ref", "merchant", "of_checkout", "status", "amount", "created_at")
    list_filter = ("status",)
    list_select_related = ("merchant", "checkout")
    search_fields = ("=merchant_refund_ref", "=checkout__id")

    @admin.display(description="checkout")
    def of_checkout(self, refund: Refund) -> str:
        return link(refund.checkout)


@admin.register(ApiCall)
class ApiCallAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "merchant", "method", "path", "status", "error_code", "request_id")
    list_filter = ("status",)
    list_select_related = ("merchant",)
    search_fields = ("=request_id", "=checkout_uuid", "=idempotency_key")


@admin.register(Customer)
class CustomerAdmin(ReadOnlyAdmin):
    """A phone number is shown by its last digits alone."""

    list_display = ("id", "__str__", "created_at")
    search_fields = ("=id", "=phone")
    secret = ("phone", "name")


@admin.register(PaymentRequest)
class PaymentRequestAdmin(ReadOnlyAdmin):
    """Whoever has the link may pay: it stays between the lead and the mate."""

    list_display = ("id", "checkout", "amount", "status", "expires_at", "paid_at")
    list_filter = ("status",)
    list_select_related = ("checkout",)
    search_fields = ("=id", "=checkout__id")
    secret = ("token", "token_digest", "name", "phone")


for model in (Item, MerchantCustomer, Change):
    admin.site.register(model, ReadOnlyAdmin)
