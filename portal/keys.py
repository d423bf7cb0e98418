"""Merchants' API keys: made by us, shown once, kept hashed."""

import secrets
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.hashers import BasePasswordHasher
from django.utils.crypto import constant_time_compare

from config.lib import crypto
from payments.models import Merchant
from portal.models import ApiClient


class ClientSecretHasher(BasePasswordHasher):
    """One SHA-256, right for 256 random bits alone: people's passwords keep PBKDF2."""

    algorithm = "client_secret"

    def encode(self, password: str, salt: str | None = None) -> str:
        return f"{self.algorithm}${crypto.digest(password)}"

    def verify(self, password: str, encoded: str) -> bool:
        return constant_time_compare(encoded, self.encode(password))

    def decode(self, encoded: str) -> dict[str, Any]:
        return {"algorithm": self.algorithm, "hash": encoded.split("$", 1)[1]}

    def safe_summary(self, encoded: str) -> Any:
        return {"algorithm": self.algorithm}

    def must_update(self, encoded: str) -> bool:
        return False

    def harden_runtime(self, password: str, encoded: str) -> None:
        """Nothing to hide: there is one hash for everybody."""


class NewClient(NamedTuple):
    """A client and its secret, which cannot be read again."""

    client: ApiClient
    client_secret: str


def create_client(merchant: Merchant, name: str) -> NewClient:
    """Make an API client with every scope and return it with its secret."""
    secret = f"sk_{secrets.token_urlsafe(32)}"
    client = ApiClient.objects.create(
        merchant=merchant,
        name=name,
        client_id=f"client_{secrets.token_hex(12)}",
        client_secret=secret,
        client_type=ApiClient.CLIENT_CONFIDENTIAL,
        authorization_grant_type=ApiClient.GRANT_CLIENT_CREDENTIALS,
        scopes=" ".join(settings.SCOPES),
    )
    return NewClient(client, secret)
