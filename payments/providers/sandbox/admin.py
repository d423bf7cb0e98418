"""The read-only admin of the sandbox bank's tables."""

from django.contrib import admin

from config.lib.admin.readonly import ReadOnlyAdmin, UnloggedAdmin
from payments.money_columns import MoneyAdmin
from payments.providers.sandbox.models import (
    BankNotification,
    BrokenKey,
    Call,
    CardSession,
    CardToken,
    Charge,
    Dispute,
    Fault,
)


@admin.register(Charge)
class ChargeAdmin(MoneyAdmin):
    list_display = ("id", "payment", "amount", "refunded_amount", "state")
    list_filter = ("state",)
    search_fields = ("id", "payment")
    amounts = ("amount", "refunded_amount")
    references = {"payment": "payments.payment", "account": "payments.merchant"}
    panels = (("bank.call", "charge"), ("bank.dispute", "charge"))
    secret = ("return_url",)


@admin.register(Call)
class CallAdmin(MoneyAdmin):
    list_display = ("key", "kind", "verdict", "reason", "amount", "created_at", "settles_at")
    search_fields = ("key", "charge", "charge__payment")
    currency = "charge.currency"
    panels = (("bank.banknotification", "call"),)


@admin.register(Dispute)
class DisputeAdmin(MoneyAdmin):
    list_display = ("id", "charge", "amount", "reason", "status", "opens_at", "respond_by")
    list_filter = ("status",)
    search_fields = ("id", "charge")
    currency = "charge.currency"


@admin.register(CardToken)
class CardTokenAdmin(UnloggedAdmin):
    list_display = ("id", "subject", "brand", "last4", "created_at", "used_at")
    search_fields = ("id",)
    secret = ("digest",)


@admin.register(CardSession)
class CardSessionAdmin(UnloggedAdmin):
    list_display = ("id", "subject", "created_at")
    search_fields = ("id",)
    secret = ("return_url", "page")


@admin.register(BankNotification)
class BankNotificationAdmin(ReadOnlyAdmin):
    list_display = ("id", "call", "dispute", "verdict", "attempts", "due_at")
    search_fields = ("id", "call", "dispute")


@admin.register(BrokenKey)
class BrokenKeyAdmin(ReadOnlyAdmin):
    list_display = ("key",)
    search_fields = ("key",)


@admin.register(Fault)
class FaultAdmin(ReadOnlyAdmin):
    list_display = ("verb", "mode", "times")
