from django.contrib import admin

from config.lib.admin import ReadOnlyAdmin
from payments.providers.sandbox.models import Call, CardSession, CardToken, Charge, Fault, Notice


@admin.register(Charge)
class ChargeAdmin(ReadOnlyAdmin):
    list_display = ("id", "payment", "amount", "refunded_amount", "currency", "state")
    list_filter = ("state",)
    search_fields = ("=id", "=payment")


@admin.register(Call)
class CallAdmin(ReadOnlyAdmin):
    list_display = ("key", "kind", "verdict", "reason", "amount", "created_at", "settles_at")
    list_filter = ("kind", "verdict")
    search_fields = ("=key", "=charge__payment")


@admin.register(CardToken)
class CardTokenAdmin(ReadOnlyAdmin):
    list_display = ("id", "subject", "brand", "last4", "created_at", "used_at")
    secret = ("digest",)


@admin.register(CardSession)
class CardSessionAdmin(ReadOnlyAdmin):
    list_display = ("id", "subject", "created_at")
    secret = ("return_url",)


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    list_display = ("id", "call", "verdict", "attempts", "due_at")
    list_select_related = ("call",)


@admin.register(Fault)
class FaultAdmin(ReadOnlyAdmin):
    list_display = ("verb", "mode", "times")
