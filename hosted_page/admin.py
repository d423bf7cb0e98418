"""Admin pages of the hosted page's models. They never show codes, e-mail addresses or whole phone numbers."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from config.lib.admin import columns
from config.lib.admin.readonly import ReadOnlyAdmin, UnloggedAdmin
from hosted_page.models import (
    CardTry,
    CspReport,
    KnownBrowser,
    OptIn,
    OptInText,
    PayerSignIn,
    ShareTake,
    SignInCode,
    SmsDay,
    SmsMessage,
    SmsStop,
)
from hosted_page.sms import message_states
from hosted_page.sms.message_states import MessageState

SENDING = ("claimed_at", "sent_at")


class PhoneAdmin(ReadOnlyAdmin):
    """Admin that shows only the last four digits of a phone number."""

    extra_columns = ("number",)

    @admin.display(description="phone")
    def number(self, row: Any) -> str:
        return f"•••• {row.phone[-4:]}" if row.phone else "Phone number deleted"


@admin.register(SignInCode)
class SignInCodeAdmin(PhoneAdmin, UnloggedAdmin):
    list_display = ("id", "subject", "number", "tries", "created_at", "expires_at", "used_at")
    search_fields = ("id", "subject")
    secret = ("phone", "code_digest", "browser_digest")


@admin.register(PayerSignIn)
class PayerSignInAdmin(ReadOnlyAdmin):
    list_display = ("id", "subject", "customer_uuid", "is_proven", "began_at")
    search_fields = ("id", "customer_uuid")
    references = {"customer_uuid": "checkout.customer"}


@admin.register(KnownBrowser)
class KnownBrowserAdmin(PhoneAdmin):
    list_display = ("id", "number", "proven_at")
    search_fields = ("id",)
    secret = ("phone", "token_digest")


@admin.register(SmsMessage)
class SmsMessageAdmin(PhoneAdmin, UnloggedAdmin):
    unindexed = ("merchant",)
    list_display = ("kind", "merchant", "number", "created_at", "state", "refusal")
    list_filter = ("kind", "receipt")
    search_fields = ("id", "checkout_uuid")
    references = {"checkout_uuid": "checkout.checkout"}
    secret = ("phone", "body", "phone_digest", "range_digest", "address_digest", "site_digest")

    def get_fields(self, request: HttpRequest, obj: SmsMessage | None = None) -> Any:
        """Return the fields. If no carrier was set up, no text was sent, so the sending times are left out."""
        fields = super().get_fields(request, obj)
        has_carrier = obj is None or message_states.state_of(obj) != MessageState.NO_CARRIER
        return [field for field in fields if has_carrier or columns.column_name(field) not in SENDING]

    @admin.display(description="state")
    def state(self, row: SmsMessage) -> str:
        """Return the state of the message, with the time at which the carrier accepted it."""
        state = message_states.state_of(row)
        at = f" at {row.sent_at:%H:%M:%S}" if state == MessageState.HANDED_OVER and row.sent_at else ""
        return f"{state.label}{at}"


@admin.register(SmsDay)
class SmsDayAdmin(ReadOnlyAdmin):
    is_small = True
    list_display = ("day", "merchant", "count", "warned_at")
    explanations: Mapping[str, str] = {"merchant": ""}
    search_fields = ("merchant__name",)


@admin.register(SmsStop)
class SmsStopAdmin(ReadOnlyAdmin):
    is_small = True
    list_display = ("stopped_at",)
    search_fields = ("number",)
    secret = ("number",)


@admin.register(CardTry)
class CardTryAdmin(UnloggedAdmin):
    list_display = ("id", "subject", "is_counted", "created_at")
    list_filter = ("is_counted",)
    search_fields = ("id",)
    secret = ("card_token", "phone_digest", "address_digest", "site_digest")


@admin.register(ShareTake)
class ShareTakeAdmin(ReadOnlyAdmin):
    list_display = ("id", "created_at")
    search_fields = ("id",)
    secret = ("address_digest", "site_digest")


@admin.register(CspReport)
class CspReportAdmin(ReadOnlyAdmin):
    is_small = True
    listed_as = "Last reported first"
    ordering = ("-last_seen",)
    list_display = ("page", "directive", "blocked", "count", "first_seen", "last_seen")
    list_filter = ("page", "directive")
    search_fields = ("blocked",)


@admin.register(OptIn)
class OptInAdmin(ReadOnlyAdmin):
    list_display = ("id", "checkout_uuid", "placement", "text", "opted_in_at")
    list_filter = ("placement",)
    search_fields = ("id", "checkout_uuid", "person")
    references = {"checkout_uuid": "checkout.checkout", "share_uuid": "checkout.paymentrequest"}
    secret = ("email", "email_digest")


@admin.register(OptInText)
class OptInTextAdmin(ReadOnlyAdmin):
    is_small = True
    list_display = ("merchant", "version", "text", "created_at")
    search_fields = ("merchant__name", "text")
