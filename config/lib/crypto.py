"""Secrets at rest: encryption for values that the service reads, digests for values that it only compares.

Rule secret.at_rest.
"""

import hashlib
import hmac
from functools import cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.signing import JSONSerializer
from django.db import models
from django.db.models import lookups

DIGEST_LETTERS = 64  # the length of a SHA-256 digest in hex
KEY_MARK_LETTERS = 8


@cache
def _field_cipher() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.FIELD_KEYS])


def encrypt(plain: str) -> str:
    """Return `plain` encrypted under the first of FIELD_KEYS."""
    return _field_cipher().encrypt(plain.encode()).decode()


def decrypt(sealed: str) -> str:
    """Decrypt a text with the matching one of FIELD_KEYS. Raises InvalidToken if no key matches."""
    return _field_cipher().decrypt(sealed.encode()).decode()


def is_under_first_key(sealed: str) -> bool:
    """Return whether a text is encrypted under the first of FIELD_KEYS."""
    try:
        Fernet(settings.FIELD_KEYS[0]).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def rotate(sealed: str) -> str:
    """Return an encrypted text, encrypted again under the first of FIELD_KEYS.

    Raises InvalidToken for a text that was not encrypted under any of FIELD_KEYS.
    """
    return _field_cipher().rotate(sealed.encode()).decode()


def digest(value: str) -> str:
    """Return the SHA-256, in hex, of a public value or of a secret with 256 random bits."""
    return hashlib.sha256(value.encode()).hexdigest()


def keyed_digest(purpose: str, value: str) -> str:
    """Return the HMAC, in hex, of a short or guessable value under LOOKUP_KEY. Store this digest in rows."""
    return _keyed_digest(settings.LOOKUP_KEY, purpose, value)


def keyed_digests(purpose: str, value: str) -> list[str]:
    """Return the HMACs of a value under LOOKUP_KEY and LOOKUP_KEY_FALLBACKS. Look rows up by all of them."""
    return [
        _keyed_digest(key, purpose, value) for key in (settings.LOOKUP_KEY, *settings.LOOKUP_KEY_FALLBACKS)
    ]


def is_keyed_digest(digest: str, purpose: str, value: str) -> bool:
    """Return whether `digest` is the HMAC of a value under any of the keys, in constant time for each key."""
    return any(hmac.compare_digest(digest.encode(), own.encode()) for own in keyed_digests(purpose, value))


def lookup_key_marks() -> list[str]:
    """Return short identifiers of LOOKUP_KEY and LOOKUP_KEY_FALLBACKS, in this order.

    A row stores the identifier of its key if it can be found only with the key under which it was written.
    """
    return [digest[:KEY_MARK_LETTERS] for digest in keyed_digests("key", "")]


def _keyed_digest(lookup_key: str, purpose: str, value: str) -> str:
    key = hashlib.sha256(f"{purpose}:{lookup_key}".encode()).digest()
    return hmac.new(key, value.encode(), hashlib.sha256).hexdigest()


class EncryptedTextField(models.TextField):
    """Text that is encrypted in the database and plain in Python."""

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return None if value is None else decrypt(value)

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return None if prepared is None else encrypt(prepared)


class FindableTextField(EncryptedTextField):
    """Encrypted text that queries can find by its whole value.

    The column holds the keyed digest of the text, followed by the ciphertext.

    An empty text stays empty. `filter(phone="+447700900123")` compares the digests under all keys, so a
    unique constraint or an index must be on `Left(name, 64)`. A unique constraint does not compare digests
    under different keys. While there are LOOKUP_KEY_FALLBACKS, code that inserts unique values therefore
    takes a lock first. Rule privacy.numbers.
    """

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return decrypt(value[DIGEST_LETTERS:]) if value else value

    def get_prep_value(self, value: Any) -> Any:
        return self.digest(value) + super().get_prep_value(value) if value else value

    def get_lookup(self, lookup_name: str) -> "type[models.Lookup[Any]] | None":
        """Return the lookup of this name, or None if a digest does not support it."""
        return super().get_lookup(lookup_name) if lookup_name in ("exact", "isnull") else None

    @staticmethod
    def digest(value: str) -> str:
        """Return the digest to write for a value, or "" for an empty value."""
        return keyed_digest("text", value) if value else ""

    @staticmethod
    def digests(value: str) -> list[str]:
        """Return the digests under which a value can be stored. New rows get the first one."""
        return keyed_digests("text", value) if value else [""]


@FindableTextField.register_lookup
class _Exact(lookups.Exact):
    """The `exact` lookup, as `IN (…)` with a digest for each key. With one key, it is as fast as `=`."""

    def get_prep_lookup(self) -> list[str] | None:
        return None if self.rhs is None else FindableTextField.digests(self.rhs)

    def process_lhs(self, *arguments: Any, **options: Any) -> tuple[str, Any]:
        column, parameters = super().process_lhs(*arguments, **options)
        return f"LEFT({column}, {DIGEST_LETTERS})", parameters

    def process_rhs(self, *_: Any) -> tuple[str, tuple[str | int, ...]]:
        return ", ".join("%s" for _ in self.rhs), tuple(self.rhs)

    def get_rhs_op(self, _: Any, rhs: str) -> str:
        return f"IN ({rhs})"


class SessionSerializer(JSONSerializer):
    """Serializer that encrypts sessions in the database. They hold codes, and secrets that are shown once."""

    def dumps(self, obj: Any) -> bytes:
        return _field_cipher().encrypt(super().dumps(obj))

    def loads(self, data: bytes) -> Any:
        """Return the session's data. Raises InvalidToken, which ends the session, if no key decrypts it."""
        return super().loads(_field_cipher().decrypt(data))
