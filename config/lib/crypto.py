"""Secrets at rest: what must be read back is encrypted, what is only compared is hashed."""

import hashlib
import hmac
from functools import cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.signing import JSONSerializer
from django.db import models
from django.db.models import lookups

DIGEST_LETTERS = 64  # of SHA-256 in hex


@cache
def _fernet() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.FIELD_KEYS])


def encrypt(plain: str) -> str:
    """Return `plain` encrypted under the first of FIELD_KEYS."""
    return _fernet().encrypt(plain.encode()).decode()


def decrypt(sealed: str) -> str:
    """Return what `encrypt` sealed under any of FIELD_KEYS; raises InvalidToken for anything else."""
    return _fernet().decrypt(sealed.encode()).decode()


def is_under_first_key(sealed: str) -> bool:
    """Return whether the first of FIELD_KEYS opens what `encrypt` sealed."""
    try:
        Fernet(settings.FIELD_KEYS[0]).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def rotate(sealed: str) -> str:
    """Return what `encrypt` sealed under any of FIELD_KEYS, sealed under the first; raises InvalidToken."""
    return _fernet().rotate(sealed.encode()).decode()


def digest(value: str) -> str:
    """Return the SHA-256 of a random secret of ours (256 bits: nothing to guess), in hex."""
    return hashlib.sha256(value.encode()).hexdigest()


def keyed_digest(purpose: str, value: str) -> str:
    """Return an HMAC of a short or guessable value, in hex: worthless without the server's key.

    Its key is LOOKUP_KEY: rows that are looked up by it are still found after SECRET_KEY was replaced.
    """
    key = hashlib.sha256(f"{purpose}:{settings.LOOKUP_KEY}".encode()).digest()
    return hmac.new(key, value.encode(), hashlib.sha256).hexdigest()


class EncryptedTextField(models.TextField):
    """Text that is encrypted in the database and plain in Python."""

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return None if value is None else decrypt(value)

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return None if prepared is None else encrypt(prepared)


class FindableTextField(EncryptedTextField):
    """Encrypted text that is found by its whole value: its keyed digest stands before it. Empty stays empty.

    `filter(phone="+447700900123")` compares digests, so a unique constraint or an index is one on `Left(name, 64)`.
    """

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return decrypt(value[DIGEST_LETTERS:]) if value else value

    def get_prep_value(self, value: Any) -> Any:
        return self.digest(value) + super().get_prep_value(value) if value else value

    def get_lookup(self, lookup_name: str) -> "type[models.Lookup[Any]] | None":
        """Return the lookup of this name; of any other than these two it would find nothing, and Django refuses it."""
        return super().get_lookup(lookup_name) if lookup_name in ("exact", "isnull") else None

    @staticmethod
    def digest(value: str) -> str:
        """Return what stands before a value, "" for none."""
        return keyed_digest("text", value) if value else ""


@FindableTextField.register_lookup
class _Exact(lookups.Exact):
    """`= 'value'`, of the digests."""

    def get_prep_lookup(self) -> str | None:
        return None if self.rhs is None else FindableTextField.digest(self.rhs)

    def process_lhs(self, *arguments: Any, **options: Any) -> tuple[str, Any]:
        column, parameters = super().process_lhs(*arguments, **options)
        return f"LEFT({column}, {DIGEST_LETTERS})", parameters


class SessionSerializer(JSONSerializer):
    """Encrypts sessions in the database: they hold codes, and secrets that are to be shown once."""

    def dumps(self, obj: Any) -> bytes:
        return _fernet().encrypt(super().dumps(obj))

    def loads(self, data: bytes) -> Any:
        """Return the session's data. Raises InvalidToken for one of another key, which ends the session."""
        return super().loads(_fernet().decrypt(data))
