"""The portal's models in the admin: people and their rights, keys, tokens, mails, and logs.

Rule operator.rights.
"""

from collections.abc import Mapping
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth.models import Group, Permission
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.text import capfirst
from oauth2_provider.models import AccessToken

from config.lib.admin import columns, lists
from config.lib.admin.readonly import OperatorAdmin, ReadOnlyAdmin
from config.lib.admin.titles import row_noun
from payments.money_columns import MoneyAdmin
from portal import audit_words, operator_changes
from portal.accounts import admin as accounts_admin
from portal.accounts import operators, sessions
from portal.accounts.membership_form import MembershipForm
from portal.backoffice import operator_rights
from portal.models import (
    ApiClient,
    AuditEntry,
    Canary,
    CheckoutNote,
    DeliveryHour,
    Invitation,
    LastWrite,
    LoginAttempt,
    Membership,
    OutboundEmail,
    PaymentHour,
    PreviousPassword,
    Trial,
    User,
)
from portal.trials import cases

ACTIONS_IN_WORDS = {ADDITION: "Added.", CHANGE: "Changed.", DELETION: "Deleted."}
RIGHTS = ("is_superuser", "is_staff", "groups", "user_permissions")
LISTED_RIGHTS = ("groups", "user_permissions")  # folded for people who are not operators


admin.site.register(PreviousPassword, accounts_admin.PreviousPasswordAdmin)
admin.site.register(LoginAttempt, accounts_admin.LoginAttemptAdmin)
admin.site.register(Authenticator, accounts_admin.AuthenticatorAdmin)
admin.site.register(UserSession, accounts_admin.UserSessionAdmin)


class PermissionsAdmin(OperatorAdmin):
    """The base class of admins that give rights. Rights and groups are shown as checkboxes."""

    titles: Mapping[str, str] = {
        "email": "e-mail",
        "is_superuser": "can do everything",
        "is_staff": "operator",
        "permissions": "rights",
        "user_permissions": "rights",
    }
    explanations: Mapping[str, str] = {
        "is_superuser": "Only operators with this right can change rights.",
        "is_staff": "May log in to these pages.",
        "groups": "",
        "user_permissions": "",
    }

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.related_model is Permission:
            kwargs["form_class"] = operator_rights.RightsField
        else:
            kwargs["widget"] = operator_rights.TickBoxes("Groups", operator_rights.GROUPS_HINT)
        return super().formfield_for_manytomany(db_field, request, **kwargs)


@admin.register(Group)
class GroupAdmin(PermissionsAdmin):
    """The rights that several operators share. Only superusers change them, because a group can give any right."""

    is_small = True
    list_display = ("name",)
    search_fields = ("name",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return operators.may_do_everything(request)

    has_change_permission = has_delete_permission = has_add_permission


@admin.register(User)
class UserAdmin(PermissionsAdmin):
    """The admin of people. Only superusers may give rights or change operators."""

    is_small = True
    list_display = ("email", "rights", "state", "date_joined", "last_login")
    list_filter = ("is_staff", "is_active")
    search_fields = ("email",)
    adding_note = (
        "The service sends no email to the new user. Ask the person to click “Forgot it?” on the login page."
        " The service then mails a link with which the person chooses a password."
    )
    fields = ("email", "is_active", *RIGHTS)
    readonly_fields = ("last_login", "date_joined", "disuse_warned_at", "disabled_for_disuse_at")
    panels = (("portal.membership", "user"),)

    @admin.display(description="rights")
    def rights(self, person: User) -> str:
        return "Operator" if person.is_staff else columns.EMPTY_CELL

    @admin.display(description="state")
    def state(self, person: User) -> str:
        if person.disabled_for_disuse_at:
            return "Disabled as unused"
        return "Active" if person.is_active else "Closed"

    @admin.display(description="rights")
    def own_rights(self, person: User) -> str:
        rows = person.user_permissions.select_related("content_type")
        return operator_rights.rights_in_words(rows) or columns.EMPTY_CELL

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = [
            name for name in self.fields if operators.may_do_everything(request) or name != "user_permissions"
        ]
        if obj is None:
            return fields
        return [
            *fields,
            *(() if operators.may_do_everything(request) else ("own_rights",)),
            *self.readonly_fields,
        ]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields, with the long lists of rights last. They are folded unless the person is an operator."""
        if not operators.may_do_everything(request):
            return super().get_fieldsets(request, obj)
        classes = () if obj and (obj.is_staff or obj.is_superuser) else ("collapse", "of-operators")
        facts = [name for name in self.get_fields(request, obj) if name not in LISTED_RIGHTS]
        return [(None, {"fields": facts}), ("Rights", {"fields": LISTED_RIGHTS, "classes": classes})]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if operators.may_do_everything(request):
            return self.readonly_fields
        # By changing a person's e-mail, an operator could take over the account.
        protected_fields = RIGHTS if obj is None else (*RIGHTS, "email")
        return (*self.readonly_fields, *protected_fields, "own_rights")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and operators.may_change_person(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let only superusers delete people, because the people's roles are deleted too."""
        return super().has_delete_permission(request, obj) and operators.may_do_everything(request)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Save and record the change. If the person may no longer log in, end the person's sessions.

        A new person has no password, and sets one through a password reset.
        """
        if not change:
            obj.set_unusable_password()
        super().save_model(request, obj, form, change)
        if not obj.is_active:
            sessions.end_all(obj)
        if change and "email" in form.changed_data:
            operator_changes.record_email(request, obj, before=form.initial["email"])
        if change and "is_active" in form.changed_data:
            operator_changes.record_activity(request, obj)

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        for membership in Membership.objects.filter(user=obj).select_related("merchant", "user"):
            operator_changes.record_removal(request, membership)
        super().delete_model(request, obj)


@admin.register(Membership)
class MembershipAdmin(OperatorAdmin):
    """The roles of people at merchants. Only superusers change them, because a role gives access to money."""

    form = MembershipForm
    is_small = True
    adding_note = (
        "The user gets this role in the merchant’s portal at once. If the person is not a user yet,"
        " add the user first."
    )
    list_display = ("user", "merchant", "role", "created_at")
    list_filter = ("role",)
    search_fields = ("user__email", "merchant__name")
    autocomplete_fields = ("user", "merchant")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("user", "merchant") if obj is not None else ()

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return operators.may_do_everything(request)

    has_change_permission = has_delete_permission = has_add_permission

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change or "role" in form.changed_data:
            operator_changes.record_role(request, obj, before=form.initial["role"] if change else "")

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        operator_changes.record_removal(request, obj)
        super().delete_model(request, obj)


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    """Shows who was invited. The token is hidden, because anyone with the link can take the role."""

    is_small = True
    list_display = ("email", "merchant", "role", "invited_by", "created_at", "expires_at", "ended_at")
    list_filter = ("role",)
    search_fields = ("email", "merchant__name")
    secret = ("token_digest",)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("id", "merchant", "user", "client", "action", "request_id", "created_at")
    search_fields = ("id",)
    merchants_order = ("-created_at", "-pk")
    titles: Mapping[str, str] = {"is_operators": "by an operator"}
    explanations: Mapping[str, str] = {"is_operators": ""}
    hidden = ("action",)  # the heading already names it

    def column(self, name: Any) -> Any:
        return self.details if name == "facts" else super().column(name)

    @admin.display(description="details")
    def details(self, entry: AuditEntry) -> str:
        return audit_words.facts_in_words(entry) or columns.EMPTY_CELL


@admin.register(CheckoutNote)
class CheckoutNoteAdmin(ReadOnlyAdmin):
    """Shows who wrote a note on which order. The note's text is private to the merchant's people."""

    unindexed = ("merchant", "user")
    list_display = ("id", "merchant", "user", "checkout_uuid", "created_at")
    search_fields = ("id", "checkout_uuid")
    secret = ("text",)


@admin.register(Trial)
class TrialAdmin(ReadOnlyAdmin):
    """Shows which cases of the checklist were run, and with which outcome."""

    unindexed = ("merchant", "user")
    list_display = ("case", "merchant", "has_passed", "created_at", "ended_at", "id")
    search_fields = ("id", "checkout_uuid")

    def column(self, name: Any) -> Any:
        return {"case": self.title, "evidence": self.lines}.get(name) or super().column(name)

    @admin.display(description="case")
    def title(self, trial: Trial) -> str:
        return cases.title_of(trial.case)

    @admin.display(description="evidence")
    def lines(self, trial: Trial) -> str:
        lines = [(line["at"][11:19], line["words"]) for line in trial.evidence]
        return format_html_join("", "<p>{} {}</p>", lines)


@admin.register(OutboundEmail)
class OutboundEmailAdmin(ReadOnlyAdmin):
    """Shows the kind of a mail. Its text is hidden, because it is private to the recipient."""

    list_display = ("id", "merchant", "kind", "tries", "created_at", "next_try_at", "sent_at", "dropped_at")
    list_filter = (
        lists.state_filter({"waiting": Q(next_try_at__isnull=False), "dropped": Q(dropped_at__isnull=False)}),
    )
    search_fields = ("id",)
    secret = ("facts", "text")
    hidden = ("kind",)  # the heading already names it
    explanations: Mapping[str, str] = {"key": "The service sends one email for each kind and key."}


@admin.register(PaymentHour)
class PaymentHourAdmin(MoneyAdmin):
    list_display = ("hour", "merchant", "currency", "captured_count", "captured_amount", "lapsed_count")
    search_fields = ("id",)
    amounts = ("captured_amount", "lapsed_amount", "refunded_amount")
    hidden = ("hold_times",)


@admin.register(DeliveryHour)
class DeliveryHourAdmin(ReadOnlyAdmin):
    list_display = ("hour", "merchant", "delivered_count", "failed_count")
    search_fields = ("id",)
    hidden = ("durations",)


@admin.register(LastWrite)
class LastWriteAdmin(ReadOnlyAdmin):
    """Shows the log position that a replica must have reached before a merchant's people read from it."""

    list_display = ("whose", "position")
    references = {"whose": "payments.merchant"}


@admin.register(Canary)
class CanaryAdmin(ReadOnlyAdmin):
    is_small = True
    list_display = ("id", "environment", "planted_at")
    secret = ("sealed", "digest")


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin):
    """Shows what operators did in the admin."""

    list_display = ("action_time", "user", "object_repr", "change_message")
    listed_as = "What operators changed, and the phone numbers that they searched for. Newest first"
    search_fields = ("object_id",)
    searched_by = "ID of the record"
    search_help_text = "Enter the whole ID."
    titles: Mapping[str, str] = {"action_time": "time", "user": "operator"}
    hidden = ("action_flag",)  # what happened says more

    def column(self, name: Any) -> Any:
        columns_in_words = {
            "change_message": self.what_happened,
            "content_type": self.kind,
            "object_id": self.record,
        }
        return columns_in_words.get(name) or super().column(name)

    @admin.display(description="kind of record")
    def kind(self, entry: LogEntry) -> str:
        model = entry.content_type.model_class() if entry.content_type else None
        return capfirst(row_noun(model._meta)) if model else columns.EMPTY_CELL

    @admin.display(description="record")
    def record(self, entry: LogEntry) -> str:
        address = entry.get_admin_url()  # None if the kind of record has no page
        code = format_html("<code>{}</code>", entry.object_id)
        return format_html('<a href="{}">{}</a>', address, code) if address else code

    @admin.display(description="what happened")
    def what_happened(self, entry: LogEntry) -> str:
        return entry.get_change_message() or ACTIONS_IN_WORDS[entry.action_flag]


@admin.register(ApiClient)
class ApiClientAdmin(ReadOnlyAdmin):
    unindexed = ("holder", "previous_holder")
    is_small = True
    list_display = ("name", "client_id", "merchant", "last_used_at", "revoked_at")
    search_fields = ("client_id", "name", "merchant__name")
    secret = ("client_secret", "previous_secret")
    # Fields of the OAuth library that have the same value for every key.
    hidden = (
        "client_type",
        "authorization_grant_type",
        "hash_client_secret",
        "skip_authorization",
        "registration_source",
    )


@admin.register(AccessToken)
class AccessTokenAdmin(ReadOnlyAdmin):
    list_display = ("id", "application", "scope", "created", "expires")
    search_fields = ("id",)
    secret = ("token", "token_checksum")
