"""Merchants' API keys: made, rotated, revoked. Their secrets are ours, shown once and kept hashed."""

import secrets
from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib.auth.hashers import BasePasswordHasher
from django.db import transaction
from django.utils.crypto import constant_time_compare
from oauth2_provider.models import AccessToken

from config.lib import clock, crypto
from payments.models import Merchant
from portal.models import ApiClient

SECRET_PREFIX = "sk_"  # no access token begins with it


class ClientSecretHasher(BasePasswordHasher):
    """Hashes with one SHA-256, which is enough for 256 random bits only: people's passwords keep PBKDF2."""

    algorithm = "client_secret"

    def encode(self, password: str, salt: str | None = None) -> str:
        return f"{self.algorithm}${crypto.digest(password)}"

    def verify(self, password: str, encoded: str) -> bool:
        return constant_time_compare(encoded, self.encode(password))

    def harden_runtime(self, password: str, encoded: str) -> None:
        """Do nothing: each check costs the same one hash."""


class NewClient(NamedTuple):
    """A client and its secret, which cannot be read again."""

    client: ApiClient
    client_secret: str


class StillRotating(Exception):
    """Two secrets are live already: stop the old one first."""


def create_client(merchant: Merchant, name: str, scopes: Collection[str] = ()) -> NewClient:
    """Make an API client with the named scopes, or with all but personal ones if none are named, and its secret.

    Rule token.personal.
    """
    secret, wanted = _new_secret(), scopes or settings.SCOPES.keys() - settings.PERSONAL_SCOPES
    client = ApiClient.objects.create(
        merchant=merchant,
        name=name,
        client_id=f"client_{secrets.token_hex(12)}",
        client_secret=secret,
        client_type=ApiClient.CLIENT_CONFIDENTIAL,
        authorization_grant_type=ApiClient.GRANT_CLIENT_CREDENTIALS,
        scopes=" ".join(scope for scope in settings.SCOPES if scope in wanted),
    )
    return NewClient(client, secret)


def is_personal(scopes: Collection[str]) -> bool:
    """Return whether one of the scopes shows customers, so that owners alone hand it out. Rule token.personal."""
    return not settings.PERSONAL_SCOPES.isdisjoint(scopes)


def newest(merchant: Merchant) -> ApiClient | None:
    """Return the merchant's newest live key, None if there is none."""
    found: ApiClient | None = (
        ApiClient.objects.filter(merchant=merchant, revoked_at=None).order_by("created").last()
    )
    return found


def rotate(merchant: Merchant, client_uuid: UUID) -> NewClient:
    """Give a key a new secret; the old one stays valid until it is stopped. Raises DoesNotExist, StillRotating."""
    with transaction.atomic():
        client = _locked(merchant, client_uuid)
        if client.previous_secret:
            raise StillRotating
        secret = _new_secret()
        client.previous_secret = client.client_secret
        client.client_secret = secret  # hashed when it is saved
        client.rotated_at = clock.now()
        client.save()
    return NewClient(client, secret)


def stop_previous(merchant: Merchant, client_uuid: UUID) -> ApiClient:
    """End a key's old secret; tokens got with it live out their hour. Raises ApiClient.DoesNotExist."""
    with transaction.atomic():
        client = _locked(merchant, client_uuid)
        client.previous_secret = ""
        client.save(update_fields=["previous_secret"])
    return client


def revoke(merchant: Merchant, client_uuid: UUID) -> ApiClient:
    """End a key and all its tokens at once. Raises ApiClient.DoesNotExist."""
    with transaction.atomic():
        client = _locked(merchant, client_uuid)
        client.revoked_at = clock.now()
        client.previous_secret = ""
        client.save(update_fields=["revoked_at", "previous_secret"])
        AccessToken.objects.filter(application=client).delete()
    return client


def _locked(merchant: Merchant, client_uuid: UUID) -> ApiClient:
    rows = ApiClient.objects.select_for_update()
    client: ApiClient = rows.get(pk=client_uuid, merchant=merchant, revoked_at=None)
    return client


def _new_secret() -> str:
    return f"{SECRET_PREFIX}{secrets.token_urlsafe(32)}"
