"""Merchants' API keys. People create, rotate and revoke them.

The service generates each secret, shows it once, and stores only its hash.
"""

import secrets
from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib.auth.hashers import BasePasswordHasher
from django.db import transaction
from django.db.models import Q
from django.utils.crypto import constant_time_compare
from oauth2_provider.models import AccessToken

from config.lib import clock, crypto
from payments.cause import Caller
from payments.models import Merchant
from portal import access
from portal.models import ApiClient, Membership, Role, User

MAX_KEYS = 50  # live keys per merchant
SECRET_PREFIX = "sk_"  # access tokens never begin with it


class ClientSecretHasher(BasePasswordHasher):
    """Hashes a client secret with a single SHA-256.

    This is enough for 256 random bits. People's passwords are hashed with PBKDF2.
    """

    algorithm = "client_secret"

    def encode(self, password: str, salt: str | None = None) -> str:
        return f"{self.algorithm}${crypto.digest(password)}"

    def verify(self, password: str, encoded: str) -> bool:
        return constant_time_compare(encoded, self.encode(password))

    def harden_runtime(self, password: str, encoded: str) -> None:
        """Do nothing. Django calls this to make all checks equally slow, and each check already takes one hash."""


class NewClient(NamedTuple):
    """A client and its secret. The secret cannot be read again later."""

    client: ApiClient
    client_secret: str


class StillRotating(Exception):
    """Raised if the key already has two live secrets. The old secret must be stopped first."""


class TooManyKeys(Exception):
    """Raised if the merchant already has the maximum number of live keys."""


class ScopeNotAllowed(Exception):
    """Raised if the person's role may not give a key one of these scopes. `roles` are the roles that may."""

    def __init__(self, scopes: Collection[str]) -> None:
        super().__init__(*scopes)
        self.roles = [role for role in Role if _GRANTABLE[role].issuperset(scopes)]


# The scopes that each role may give a key. Through a key, a person must not get access that the person's role
# does not give in the portal: to refunds, and to the personal data of customers.
_ALL = frozenset(settings.SCOPES)
_GRANTABLE: dict[Role, frozenset[str]] = {
    Role.OWNER: _ALL,
    Role.ADMIN: _ALL - settings.PERSONAL_SCOPES,
    Role.DEVELOPER: _ALL - settings.PERSONAL_SCOPES - {"refunds:write"},
    Role.SUPPORT: frozenset(),
    Role.VIEWER: frozenset(),
}


def grantable_scopes(role: str) -> frozenset[str]:
    """Return the scopes that a person with this role may give a key. Rule token.grants."""
    return _GRANTABLE[Role(role)]


def create(actor: Membership, name: str, scopes: Collection[str]) -> NewClient:
    """Create a key for the merchant. The person `actor` becomes its holder.

    Raises ScopeNotAllowed, TooManyKeys, access.NotAllowed. Rules token.grants, token.personal.
    """
    with transaction.atomic(savepoint=True):
        merchant = Merchant.objects.select_for_update(no_key=True).get(pk=actor.merchant_id)
        _check_scopes(actor, scopes)
        if ApiClient.objects.filter(merchant=merchant, revoked_at=None).count() >= MAX_KEYS:
            raise TooManyKeys
        return create_client(merchant, name, scopes, holder=actor.user)


def create_client(
    merchant: Merchant, name: str, scopes: Collection[str] = (), *, holder: User | None = None
) -> NewClient:
    """Create a key with these scopes. If `scopes` is empty, it gets all scopes except the personal ones.

    `holder` is the person who sees the secret. This function does not check a role, because `create` does.
    """
    secret, granted_scopes = _generate_secret(), scopes or settings.SCOPES.keys() - settings.PERSONAL_SCOPES
    client = ApiClient.objects.create(
        merchant=merchant,
        name=name,
        client_id=f"client_{secrets.token_hex(12)}",
        client_secret=secret,
        client_type=ApiClient.CLIENT_CONFIDENTIAL,
        authorization_grant_type=ApiClient.GRANT_CLIENT_CREDENTIALS,
        scopes=" ".join(scope for scope in settings.SCOPES if scope in granted_scopes),
        holder=holder,
    )
    return NewClient(client, secret)


def newest_key(merchant: Merchant) -> ApiClient | None:
    """Return the merchant's newest live key, or None if there is none."""
    key: ApiClient | None = (
        ApiClient.objects.filter(merchant=merchant, revoked_at=None).order_by("created").last()
    )
    return key


def rotate(actor: Membership, client_uuid: UUID) -> NewClient:
    """Give a key a new secret, whose holder is the person `actor`. The old secret stays valid until it is stopped.

    Raises ApiClient.DoesNotExist, StillRotating, ScopeNotAllowed, access.NotAllowed. Rule token.grants.
    """
    with transaction.atomic(savepoint=True):
        client = _lock_client(actor, client_uuid)
        if client.previous_secret:
            raise StillRotating
        secret = _generate_secret()
        client.previous_secret, client.previous_holder_id = client.client_secret, client.holder_id
        client.client_secret, client.holder = secret, actor.user  # the secret is hashed when it is saved
        client.rotated_at = clock.now()
        client.save()
    return NewClient(client, secret)


def stop_previous(actor: Membership, client_uuid: UUID) -> ApiClient:
    """Stop a key's old secret, and delete all tokens of the key.

    All tokens are deleted, because a token does not record with which of the two secrets it was issued.
    Raises ApiClient.DoesNotExist, ScopeNotAllowed, access.NotAllowed.
    """
    with transaction.atomic(savepoint=True):
        client = _lock_client(actor, client_uuid)
        client.previous_secret, client.previous_holder = "", None
        client.save(update_fields=["previous_secret", "previous_holder"])
        AccessToken.objects.filter(application=client).delete()
    return client


def revoke(actor: Membership, client_uuid: UUID) -> ApiClient:
    """Revoke a key, and delete all its tokens.

    Raises ApiClient.DoesNotExist, ScopeNotAllowed, access.NotAllowed.
    """
    with transaction.atomic(savepoint=True):
        client = _lock_client(actor, client_uuid)
        client.revoked_at = clock.now()
        client.previous_secret, client.previous_holder = "", None
        client.save(update_fields=["revoked_at", "previous_secret", "previous_holder"])
        AccessToken.objects.filter(application=client).delete()
    return client


def keys_held_by(merchant: Merchant, person: User) -> list[ApiClient]:
    """Return the merchant's live keys for which the person holds a working secret, oldest first."""
    is_holder = Q(holder=person) | Q(previous_holder=person)  # the holder of a stopped secret is not stored
    return list(ApiClient.objects.filter(is_holder, merchant=merchant, revoked_at=None).order_by("created"))


def may_approve_endpoint(caller: Caller) -> bool:
    """Return whether an endpoint that this key sets may receive personal data without a separate approval.

    This is true if everyone who holds a live secret of the key is now an owner or an admin. Rule
    endpoint.approved.
    """
    client = ApiClient.objects.get(pk=caller.client_uuid)
    holders = {client.holder_id} | ({client.previous_holder_id} if client.previous_secret else set())
    managers = Membership.objects.filter(
        merchant=caller.merchant, role__in=access.MANAGERS, user__is_active=True, user__in=holders - {None}
    )
    return managers.count() == len(holders)


def _lock_client(actor: Membership, client_uuid: UUID) -> ApiClient:
    """Lock and return a live key that the person may manage.

    Raises ApiClient.DoesNotExist, ScopeNotAllowed, access.NotAllowed.
    """
    rows = ApiClient.objects.select_for_update(no_key=True)
    client: ApiClient = rows.get(pk=client_uuid, merchant=actor.merchant_id, revoked_at=None)
    _check_scopes(actor, client.scopes.split())
    return client


def _check_scopes(actor: Membership, scopes: Collection[str]) -> None:
    """Check whether the person's current role may change keys and grant all these scopes.

    Raises access.NotAllowed, ScopeNotAllowed.
    """
    access.recheck(actor, "change_keys")
    if not grantable_scopes(actor.role).issuperset(scopes):
        raise ScopeNotAllowed(scopes)


def _generate_secret() -> str:
    return f"{SECRET_PREFIX}{secrets.token_urlsafe(32)}"
