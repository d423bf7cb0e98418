"""Mails to owners. They list the API keys that a person can still use after losing a right."""

from uuid import uuid4

from payments.models import Merchant
from portal import access, keys
from portal.mail import outbox
from portal.models import User


def report_keys(merchant: Merchant, person: User, *, before: str, after: str) -> None:
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
