from typing import Any

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.http import HttpRequest
from oauth2_provider.models import AccessToken, Grant, IDToken, RefreshToken

from config.lib.admin import OperatorAdmin, ReadOnlyAdmin
from payments.columns import MoneyAdmin
from portal.models import (
    ApiClient,
    AuditEntry,
    DeliveryHour,
    Invitation,
    LoginAttempt,
    Membership,
    Notice,
    PaymentHour,
    User,
)


@admin.register(User)
class UserAdmin(OperatorAdmin):
    is_small = True
    list_display = ("email", "is_staff", "is_active", "date_joined", "last_login")
    list_filter = ("is_staff", "is_active")
    search_fields = ("email",)
    exclude = ("password",)
    readonly_fields = ("last_login", "date_joined")
    filter_horizontal = ("groups", "user_permissions")
    panels = (("portal.membership", "user"),)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "user_permissions":
            kwargs["queryset"] = Permission.objects.select_related("content_type")
        return super().formfield_for_manytomany(db_field, request, **kwargs)


@admin.register(Membership)
class MembershipAdmin(OperatorAdmin):
    is_small = True
    list_display = ("__str__", "user", "merchant", "role", "created_at")
    list_filter = ("role",)
    search_fields = ("user__email", "merchant__name")
    autocomplete_fields = ("user", "merchant")


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    """Whoever has the link takes the role: of its token nothing is shown."""

    is_small = True
    list_display = ("email", "merchant", "role", "invited_by", "created_at", "expires_at", "ended_at")
    list_filter = ("role",)
    search_fields = ("email", "merchant__name")
    secret = ("token_digest",)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("id", "merchant", "user", "action", "request_id", "created_at")
    search_fields = ("id",)
    merchants_order = ("-created_at", "-pk")


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """A mail is known by what it is about; what it says is between us and its readers."""

    list_display = ("id", "merchant", "kind", "tries", "created_at", "next_try_at", "sent_at")
    search_fields = ("id",)
    secret = ("facts",)


@admin.register(PaymentHour)
class PaymentHourAdmin(MoneyAdmin):
    list_display = ("hour", "merchant", "currency", "captured_count", "captured_amount", "lapsed_count")
    search_fields = ("id",)
    amounts = ("captured_amount", "lapsed_amount", "refunded_amount")


@admin.register(DeliveryHour)
class DeliveryHourAdmin(ReadOnlyAdmin):
    list_display = ("hour", "merchant", "delivered_count", "failed_count")
    search_fields = ("id",)


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin):
    """What operators did here."""

    list_display = ("action_time", "user", "object_repr", "content_type", "change_message")
    search_fields = ("object_id",)


@admin.register(LoginAttempt)
class LoginAttemptAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "kind", "account_digest", "address_digest")
    list_filter = ("kind",)
    search_fields = ("id",)


class ApiClientAdmin(ReadOnlyAdmin):
    is_small = True
    list_display = ("name", "client_id", "merchant", "last_used_at", "revoked_at")
    search_fields = ("client_id", "name", "merchant__name")
    secret = ("client_secret", "previous_secret")


class AccessTokenAdmin(ReadOnlyAdmin):
    list_display = ("id", "application", "scope", "created", "expires")
    search_fields = ("id",)
    secret = ("token", "token_checksum")


class AuthenticatorAdmin(ReadOnlyAdmin):
    is_small = True
    list_display = ("user", "type", "created_at", "last_used_at")
    search_fields = ("user__email",)
    secret = ("data",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Somebody who has lost phone and recovery codes is let in anew by an operator."""
        return admin.ModelAdmin.has_delete_permission(self, request, obj)


class UserSessionAdmin(ReadOnlyAdmin):
    list_display = ("user", "created_at", "last_seen_at", "ip", "user_agent")
    search_fields = ("user",)
    secret = ("session_key", "data")


# The libraries register their models as writable, and show what is secret. Grants of people and refresh tokens
# do not exist here.
for unused in (Grant, IDToken, RefreshToken):
    admin.site.unregister(unused)
for model, shown in (
    (ApiClient, ApiClientAdmin),
    (AccessToken, AccessTokenAdmin),
    (Authenticator, AuthenticatorAdmin),
    (UserSession, UserSessionAdmin),
):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
    admin.site.register(model, shown)
