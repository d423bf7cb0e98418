"""Operators' changes to a merchant and its people. The merchant's audit log records them, and a mail reports them.

Rule operator.recorded.
"""

from typing import Any, cast

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.http import HttpRequest

from payments.models import Merchant
from portal import audit, team
from portal.mail import outbox, support
from portal.models import Membership, Role, User

EMAIL_CHANGED = "email_changed_by_operator"
FACTOR_REMOVED = "factor_removed_by_operator"


def record_settings(request: HttpRequest, merchant: Merchant, fields: list[str]) -> None:
    """Record that an operator changed these settings of a merchant."""
    audit.record_operator_action(request, merchant, "settings_changed", fields=fields)


def record_stop(request: HttpRequest, merchant: Merchant, *, is_stopped: bool) -> None:
    """Record that an operator stopped a merchant's payments, or allowed them again.

    `trouble_mails` informs the owners.
    """
    audit.record_operator_action(request, merchant, "payments_stopped" if is_stopped else "payments_resumed")


def invite_owner(request: HttpRequest, merchant: Merchant, email: str) -> str:
    """Invite an owner to a merchant, and record it. Return why this was refused, or "" if it was not."""
    try:
        with transaction.atomic(durable=True):
            team.invite_owner(merchant, email, operator=cast("User", request.user))
            facts = {"email": email, "role": Role.OWNER}
            audit.record_operator_action(request, merchant, "person_invited", **facts)
    except team.TeamRefused as refused:
        return str(refused)
    return ""


def record_role(request: HttpRequest, membership: Membership, *, before: str) -> None:
    """Record that an operator gave a person a role. `before` is the previous role, or "" for a new person.

    If the person had a role before, end the person's invitations that the new role may not send, and mail the
    owners about the person's keys (`team.take_rights`).
    """
    facts = {"email": membership.user.email, "role": membership.role}
    audit.record_operator_action(request, membership.merchant, "role_changed", **facts)
    if before:
        team.take_rights(membership, before)


def record_removal(request: HttpRequest, membership: Membership) -> None:
    """Record that an operator removes a person from a merchant. Call it before the row is deleted."""
    audit.record_operator_action(request, membership.merchant, "person_removed", email=membership.user.email)
    before, membership.role = membership.role, ""
    team.take_rights(membership, before)


def record_email(request: HttpRequest, person: User, *, before: str) -> None:
    """Record that an operator changed a person's e-mail, and send a mail about this to the previous address."""
    _record_of_person(request, person, "email_changed", before=before, email=person.email)
    _queue_mail(
        before,
        "Your e-mail address was changed",
        f"Our support changed the address with which you log in from {before} to {person.email}. "
        "This address no longer works.",
        EMAIL_CHANGED,
    )


def record_activity(request: HttpRequest, person: User) -> None:
    """Record that an operator closed a person's account, or reopened it.

    If the account was closed, end the person's open invitations, and mail the owners about the person's keys. The
    person keeps their roles, but cannot use them until the account is reopened.
    """
    if person.is_active:
        _record_of_person(request, person, "account_opened", email=person.email)
        return
    _record_of_person(request, person, "account_closed", email=person.email)
    for membership in _memberships_of(person):
        before, membership.role = membership.role, ""
        team.take_rights(membership, before)


def record_removed_factor(request: HttpRequest, authenticator: Authenticator) -> None:
    """Record that an operator deleted a person's second factor, and inform the person."""
    person: User = authenticator.user
    _record_of_person(request, person, "second_factor_deleted", email=person.email)
    kind = authenticator.get_type_display()
    _queue_mail(
        person.email,
        "A second factor was removed",
        f"Our support removed a second factor of your account: {kind}. "
        "If you have no other second factor, you set one up at your next login.",
        FACTOR_REMOVED,
    )


def _record_of_person(request: HttpRequest, person: User, action: str, **facts: Any) -> None:
    for membership in _memberships_of(person):
        audit.record_operator_action(request, membership.merchant, action, **facts)


def _memberships_of(person: User) -> list[Membership]:
    return list(Membership.objects.filter(user=person).select_related("merchant"))


def _queue_mail(address: str, subject: str, words: str, kind: str) -> None:
    prefix = "TEST · " if settings.SANDBOX else ""
    body = f"{words}\n\nIf you did not ask for this, write to {support.support_in_words()} now.\n"
    outbox.queue_mail(EmailMessage(f"{prefix}{subject}", body, to=[address]), kind, seconds=None)
