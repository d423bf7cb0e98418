"""A merchant's team. Members invite people by mail, change their roles, and remove them.

The last owner cannot be removed (rule portal.last_owner).
"""

import secrets
from datetime import timedelta
from uuid import UUID, uuid4

from django.db import transaction
from django.urls import reverse

from config.lib import clock, crypto, quota
from hosted_page import waiting_times
from payments.models import Merchant
from portal import access, keys
from portal.mail import outbox
from portal.models import Invitation, Membership, Role, User

LIFETIME = timedelta(days=7)
MAX_OPEN = 50
# The limit on a merchant's invitations. Withdrawn invitations count too, because each of them was mailed.
PER_MERCHANT = quota.Limit(50, timedelta(days=1))
PER_ADDRESS = quota.Limit(3, timedelta(days=1))  # per merchant and invited address
INVITED = "This person is invited already. Withdraw the invitation before you send a new one."


class TeamRefused(Exception):
    """Raised if a change to the team is not allowed. The message is a sentence for the person."""


def invite(actor: Membership, email: str, role: Role) -> Invitation:
    """Create an invitation and queue its mail. Raises TeamRefused, NotAllowed."""
    with transaction.atomic(savepoint=True):
        merchant = _lock_merchant(actor.merchant)
        access.recheck(actor, "change_team")
        _check_owner(actor, role)
        return _create_invitation(merchant, email, role, actor.user)


def invite_owner(merchant: Merchant, email: str, *, operator: User) -> Invitation:
    """Create an invitation in which an operator offers the role of owner, and queue its mail. Raises TeamRefused."""
    with transaction.atomic(savepoint=True):
        return _create_invitation(_lock_merchant(merchant), email, Role.OWNER, operator)


def _create_invitation(merchant: Merchant, email: str, role: Role, user: User) -> Invitation:
    _check_open_invitations(merchant, email)
    _check_daily_limits(merchant, email)
    token = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        merchant=merchant,
        email=email,
        role=role,
        token_digest=crypto.digest(token),
        invited_by=user,
        expires_at=clock.now() + LIFETIME,
    )
    sealed = crypto.encrypt(reverse("portal_join", args=[token]))
    outbox.queue_once(merchant, "invitation", key=str(invitation.pk), link=sealed)
    return invitation


def _check_open_invitations(merchant: Merchant, email: str) -> None:
    """End expired invitations. Raise TeamRefused for a member, an invited person, or too many invitations."""
    open_invitations = Invitation.objects.filter(merchant=merchant, ended_at=None)
    open_invitations.filter(expires_at__lte=clock.now()).update(ended_at=clock.now())
    if Membership.objects.filter(merchant=merchant, user__email__iexact=email).exists():
        raise TeamRefused("This person is in the team already.")
    if open_invitations.filter(email__iexact=email).exists():
        raise TeamRefused(INVITED)
    if open_invitations.count() >= MAX_OPEN:
        raise TeamRefused("Too many invitations are open. Withdraw some first.")


def _check_daily_limits(merchant: Merchant, email: str) -> None:
    """Raise TeamRefused if a daily limit on invitations is reached.

    The caller has locked the merchant, so that parallel invitations are all counted. Rule limit.invitations.
    """
    now, invitations = clock.now(), Invitation.objects.filter(merchant=merchant)
    if free_at := quota.locked_until(invitations.filter(email__iexact=email), PER_ADDRESS, now):
        words = "Too many invitations to this address in a day. Invite this person again"
        raise TeamRefused(f"{words} {waiting_times.time_until(free_at, now)}.")
    if free_at := quota.locked_until(invitations, PER_MERCHANT, now):
        raise TeamRefused(
            f"Too many invitations in a day. Invite the next one {waiting_times.time_until(free_at, now)}."
        )


def find_open_invitation(token: str) -> Invitation:
    """Return the open invitation with this token. Raises Invitation.DoesNotExist."""
    rows = Invitation.objects.select_related("merchant", "invited_by")
    return rows.get(token_digest=crypto.digest(token), ended_at=None, expires_at__gt=clock.now())


def accept(token: str, user: User) -> Membership:
    """Add a person with a proven address to the team, with the offered role. Raises Invitation.DoesNotExist."""
    with transaction.atomic(savepoint=True):
        invitation = find_open_invitation(token)
        _lock_merchant(invitation.merchant)
        if not Invitation.objects.filter(pk=invitation.pk, ended_at=None).update(ended_at=clock.now()):
            raise Invitation.DoesNotExist
        membership, _ = Membership.objects.get_or_create(
            merchant=invitation.merchant, user=user, defaults={"role": invitation.role}
        )
    return membership


def withdraw_invitation(merchant: Merchant, invitation_uuid: UUID) -> Invitation:
    """End an invitation that has not been accepted. Raises Invitation.DoesNotExist."""
    with transaction.atomic(savepoint=True):
        rows = Invitation.objects.select_for_update(no_key=True)
        invitation = rows.get(pk=invitation_uuid, merchant=merchant, ended_at=None)
        invitation.ended_at = clock.now()
        invitation.save(update_fields=["ended_at"])
    return invitation


def change_role(actor: Membership, membership_uuid: UUID, role: Role) -> Membership:
    """Change a person's role, and end the invitations that the new role may not send.

    Raises Membership.DoesNotExist, TeamRefused, NotAllowed.
    """
    with transaction.atomic(savepoint=True):
        member = _lock_managed_member(actor, membership_uuid)
        _check_owner(actor, Role(member.role), role)
        if member.role == Role.OWNER and role != Role.OWNER:
            _check_another_owner(member)
        before, member.role = member.role, role
        member.save(update_fields=["role"])
        take_rights(member, before)
    return member


def remove(actor: Membership, membership_uuid: UUID) -> Membership:
    """Remove a person from the team, and end the person's open invitations.

    People can remove themselves. Raises Membership.DoesNotExist, TeamRefused, NotAllowed.
    """
    with transaction.atomic(savepoint=True):
        member = _lock_managed_member(actor, membership_uuid)
        _check_owner(actor, Role(member.role))
        if member.role == Role.OWNER:
            _check_another_owner(member)
        Membership.objects.filter(pk=member.pk).delete()
        before, member.role = member.role, ""
        take_rights(member, before)
    return member


def _lock_merchant(merchant: Merchant) -> Merchant:
    """Lock the merchant, so that two owners cannot remove each other at the same time."""
    return Merchant.objects.select_for_update(no_key=True).get(pk=merchant.pk)


def _lock_managed_member(actor: Membership, membership_uuid: UUID) -> Membership:
    _lock_merchant(actor.merchant)
    access.recheck(actor, "change_team")
    rows = Membership.objects.select_related("user", "merchant")
    return rows.get(pk=membership_uuid, merchant=actor.merchant)


def take_rights(member: Membership, before: str) -> None:
    """End the invitations that the new role may not send, and report the person's keys to the owners."""
    _end_invitations(member)
    _report_keys(member.merchant, member.user, before=before, after=member.role)


def _report_keys(merchant: Merchant, person: User, *, before: str, after: str) -> None:
    """If the role `after` lacks a right that `before` had, mail the owners a list of the person's live keys.

    `after` is "" for a person who leaves. Call this function in the transaction of the change. Rule
    portal.lost_rights.
    """
    if not _rights_of(before) - _rights_of(after):
        return
    held_keys = [
        {"name": key.name, "client_id": key.client_id} for key in keys.keys_held_by(merchant, person)
    ]
    if held_keys:
        outbox.queue_once(merchant, "keys_of_person", key=str(uuid4()), person=person.email, keys=held_keys)


def _rights_of(role: str) -> set[str]:
    """Return the rights of a role: the actions in the portal, and the scopes that the role may give a key."""
    if not role:
        return set()
    actions = {action for action, roles in access.ROLES_BY_ACTION.items() if role in roles}
    return actions | keys.grantable_scopes(role)


def _end_invitations(member: Membership) -> None:
    """End the person's open invitations that the person's current role may not send."""
    if member.role == Role.OWNER:
        return
    rows = Invitation.objects.filter(merchant=member.merchant, invited_by=member.user, ended_at=None)
    if access.may(member, "change_team"):
        rows = rows.filter(role=Role.OWNER)
    rows.update(ended_at=clock.now())


def _check_owner(actor: Membership, *roles: Role) -> None:
    if Role.OWNER in roles and actor.role != Role.OWNER:
        raise TeamRefused("Only an owner may make, change or remove an owner.")


def _check_another_owner(member: Membership) -> None:
    others = Membership.objects.filter(merchant=member.merchant, role=Role.OWNER, user__is_active=True)
    if not others.exclude(pk=member.pk).exists():
        raise TeamRefused("This is the last owner. Make another person an owner first.")
