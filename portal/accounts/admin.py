"""Admin pages about logins: second factors, sessions, login attempts, previous passwords. Rule operator.rights."""

from typing import Any

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.http import HttpRequest

from config.lib.admin.readonly import ReadOnlyAdmin
from portal import operator_changes
from portal.accounts import operators, sessions


class PreviousPasswordAdmin(ReadOnlyAdmin):
    """Shows when people set their previous passwords."""

    list_display = ("user", "created_at")
    search_fields = ("user",)
    secret = ("encoded",)


class LoginAttemptAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "kind", "account_digest", "address_digest")
    list_filter = ("kind",)
    search_fields = ("id",)


class AuthenticatorAdmin(ReadOnlyAdmin):
    is_small = True
    list_display = ("user", "type", "created_at", "last_used_at")
    search_fields = ("user__email",)
    secret = ("data",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let operators delete the second factor of a person who has lost the phone and the recovery codes."""
        may = admin.ModelAdmin.has_delete_permission(self, request, obj)
        return may and operators.may_change_person(request, obj.user if obj else None)

    def delete_model(self, request: HttpRequest, obj: Authenticator) -> None:
        operator_changes.record_removed_factor(request, obj)
        super().delete_model(request, obj)


class UserSessionAdmin(ReadOnlyAdmin):
    """Shows where people are logged in. Deleting a row ends the session."""

    deletes_by = "End this session"
    list_display = ("user", "created_at", "last_seen_at", "ip", "user_agent")
    search_fields = ("user",)
    secret = ("session_key", "data")

    def column(self, name: Any) -> Any:
        return self.browser if name == "user_agent" else super().column(name)

    @admin.display(description="browser")
    def browser(self, session: UserSession) -> str:
        return sessions.browser_in_words(session.user_agent)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let operators end a person's session."""
        may = admin.ModelAdmin.has_delete_permission(self, request, obj)
        return may and operators.may_change_person(request, obj.user if obj else None)

    def delete_model(self, request: HttpRequest, obj: UserSession) -> None:
        """End the session, so that its key no longer works."""
        obj.end()
