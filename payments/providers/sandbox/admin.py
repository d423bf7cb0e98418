"""Read-only admin pages for the sandbox bank's tables."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from config.lib.admin import columns
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
    explanations: Mapping[str, str] = {
        "payment": "Our payment.",
        "account": "Our merchant.",
        "token": "The token of the card that was charged.",
        "last4": "",
    }


@admin.register(Call)
class CallAdmin(MoneyAdmin):
    titles: Mapping[str, str] = {
        "key": "ID",
        "reference": "service’s key",
        "is_remembered": "answer is repeated",
    }
    explanations: Mapping[str, str] = {
        "key": "",
        "reference": "The key that the service sent. An action in the dashboard has no key.",
        "is_remembered": "Whether another call with the key gets this answer.",
        "changed_at": "",
        "refund": "Our refund.",
        "share": "Our share.",
    }
    code_words = ("kind", "verdict", "reason", "fails_with")
    list_display = ("key", "kind", "verdict", "reason", "amount", "created_at", "settles_at")
    search_fields = ("key", "charge", "charge__payment")
    currency = "charge.currency"
    panels = (("bank.banknotification", "call"),)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields of the page. The field `has_returned` is shown only for refunds."""
        fields = super().get_fields(request, obj)
        is_refund = obj is None or obj.kind == "refund"
        return [field for field in fields if is_refund or columns.column_name(field) != "has_returned"]


@admin.register(Dispute)
class DisputeAdmin(MoneyAdmin):
    code_words = ("reason",)
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
    code_words = ("verdict",)
    list_display = ("id", "call", "dispute", "verdict", "attempts", "due_at")
    search_fields = ("id", "call", "dispute")


@admin.register(BrokenKey)
class BrokenKeyAdmin(ReadOnlyAdmin):
    list_display = ("key",)
    search_fields = ("key",)


@admin.register(Fault)
class FaultAdmin(ReadOnlyAdmin):
    list_display = ("verb", "mode", "times")
