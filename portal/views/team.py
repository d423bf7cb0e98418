"""The team page: its people, the invitations, and the actions that each role may take."""

from typing import Any
from uuid import UUID

from allauth.mfa.models import Authenticator
from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from config.lib import clock
from payments.models import Merchant
from portal import access, audit, keys, pages, team
from portal.access import requires
from portal.accounts import second_factor
from portal.models import Invitation, Membership, Role
from portal.pages import Question

HERE = "portal_team"
EMAIL_ERROR = "Write an e-mail address, such as lea@acme.example."
ACTION_TEXTS: dict[str, str] = {
    "view": "See everything except personal data and the audit log",
    "export": "Export files",
    "refund": "Refund",
    "cancel": "Cancel orders",
    "note": "Write notes",
    "resend": "Send deliveries again",
    "reveal": "See customers’ personal data",
    "change_webhooks": "Change webhooks, send test events",
    "approve_endpoint": "Approve an endpoint for personal data",
    "change_keys": "Make and revoke API keys",
    "change_team": "Invite, change and remove people",
    "change_settings": "Change the settings",
    "read_audit": "Read the audit log",
}
MAKE_OWNER = "Make a person an owner"  # portal.team allows this only to owners
SCOPE_TEXTS = {  # portal.keys.grantable_scopes says which roles may give a scope
    "refunds:write": "Make API keys that refund",
    "customers:read": "Make API keys that read customers’ data",
}


class InviteForm(forms.Form):
    """The form for an invitation: the person's address and role."""

    email = forms.EmailField(
        max_length=254, error_messages=dict.fromkeys(("required", "invalid"), EMAIL_ERROR)
    )
    role = forms.ChoiceField(choices=Role.choices, error_messages={"required": "Choose a role."})


@requires("view")
def show_team(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the people of the team, the open invitations, and the actions that each role may take."""
    return _show_team(request, membership)


def _show_team(request: HttpRequest, membership: Membership, **more: Any) -> HttpResponse:
    open_invitations = Invitation.objects.filter(ended_at=None, expires_at__gt=clock.now())
    context: dict[str, Any] = {
        "members": _member_rows(membership.merchant),
        "invitations": open_invitations.filter(merchant=membership.merchant),
        "roles": Role.choices,
        "table": _role_table(),
        "form": InviteForm(),
    }
    return pages.show_page(request, membership, "portal/team.html", context | more, here=HERE)


def _role_table() -> list[dict[str, Any]]:
    """Return the table of permissions. It has a row for each action, and a cell for each role."""
    table = [(words, access.ROLES_BY_ACTION[action]) for action, words in ACTION_TEXTS.items()]
    for scope, words in SCOPE_TEXTS.items():
        table.append((words, frozenset(role for role in Role if scope in keys.grantable_scopes(role))))
    table.append((MAKE_OWNER, frozenset({Role.OWNER})))
    return [{"words": words, "cells": [role in allowed for role in Role]} for words, allowed in table]


def _member_rows(merchant: Merchant) -> list[dict[str, Any]]:
    rows = Membership.objects.filter(merchant=merchant).select_related("user").order_by("created_at")
    members = list(rows)
    authenticators = Authenticator.objects.filter(user__in=[member.user_id for member in members])
    protected_user_ids = set(
        authenticators.filter(type__in=second_factor.FACTORS).values_list("user_id", flat=True)
    )
    owners = [member for member in members if member.role == Role.OWNER and member.user.is_active]
    return [
        {
            "member": member,
            "has_second_factor": member.user_id in protected_user_ids,
            "is_last_owner": owners == [member],
        }
        for member in members
    ]


@requires("change_team", sensitive=True, form_of="portal_team")
def invite(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Invite a person by mail."""
    form = InviteForm(request.POST)
    if form.is_valid():
        email, role = form.cleaned_data["email"], Role(form.cleaned_data["role"])
        try:
            with transaction.atomic(durable=True):
                team.invite(membership, email, role)
                audit.record(request, membership, "person_invited", email=email, role=role.value)
        except team.TeamRefused as refusal:
            form.add_error("email", str(refusal))
        else:
            messages.success(request, f"Invited. The link in the mail to {email} works for 7 days.")
            return redirect("portal_team")
    return _show_team(request, membership, errors=pages.first_errors(form), form=form)


@requires("change_team", sensitive=True, form_of="portal_team")
def withdraw_invitation(request: HttpRequest, membership: Membership, invitation_uuid: UUID) -> HttpResponse:
    """Withdraw an invitation."""
    with access.or_404(), transaction.atomic(durable=True):
        invitation = team.withdraw_invitation(membership.merchant, invitation_uuid)
        audit.record(request, membership, "invitation_taken_back", email=invitation.email)
    messages.success(request, f"The invitation of {invitation.email} is withdrawn.")
    return redirect("portal_team")


@requires("change_team", sensitive=True, form_of="portal_team")
def change_role(request: HttpRequest, membership: Membership, membership_uuid: UUID) -> HttpResponse:
    """Give a person a different role."""
    try:
        with access.or_404(), transaction.atomic(durable=True):
            member = team.change_role(membership, membership_uuid, _read_role(request))
            audit.record(request, membership, "role_changed", email=member.user.email, role=member.role)
    except team.TeamRefused as refusal:
        pages.report_refusal(request, str(refusal))
    else:
        messages.success(request, f"{member.user.email} is {Role(member.role).in_words} now.")
    return redirect("portal_team")


def _read_role(request: HttpRequest) -> Role:
    role = request.POST.get("role", "")
    if role not in Role.values:
        raise team.TeamRefused("Choose a role.")
    return Role(role)


@requires("change_team", sensitive=True)
def remove(request: HttpRequest, membership: Membership, membership_uuid: UUID) -> HttpResponse:
    """Ask the person to confirm, then remove a member from the team."""
    if request.method != "POST":
        return pages.ask_question(
            request, membership, _remove_question(membership, membership_uuid), here=HERE
        )
    return _remove_member(request, membership, membership_uuid)


def _remove_question(membership: Membership, membership_uuid: UUID) -> Question:
    members = Membership.objects.select_related("user")
    with access.or_404():
        member = members.get(merchant=membership.merchant, pk=membership_uuid)
    text = f"They lose access to {membership.merchant.name} at once. The invitations that they sent stop working."
    return Question("Team", f"Remove {member.user.email}?", text, "Remove them now")


def _remove_member(request: HttpRequest, membership: Membership, membership_uuid: UUID) -> HttpResponse:
    try:
        with access.or_404(), transaction.atomic(durable=True):
            member = team.remove(membership, membership_uuid)
            audit.record(request, membership, "person_removed", email=member.user.email)
    except team.TeamRefused as refusal:
        pages.report_refusal(request, str(refusal))
    else:
        messages.success(request, f"{member.user.email} is no longer in the team.")
    is_still_in_team = Membership.objects.filter(pk=membership.pk).exists()
    return redirect("portal_team" if is_still_in_team else "portal_home")
