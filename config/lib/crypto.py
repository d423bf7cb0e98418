"""Secrets at rest. Values that the service must read are encrypted. Values that it only compares are digested.

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
    """Encrypt `plain` with the first key in FIELD_KEYS."""
    return _field_cipher().encrypt(plain.encode()).decode()


def decrypt(sealed: str) -> str:
    """Decrypt a text with the matching key in FIELD_KEYS. Raises InvalidToken if no key matches."""
    return _field_cipher().decrypt(sealed.encode()).decode()


def is_under_first_key(sealed: str) -> bool:
    """Return whether a text is encrypted with the first key in FIELD_KEYS."""
    try:
        Fernet(settings.FIELD_KEYS[0]).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def rotate(sealed: str) -> str:
    """Decrypt a text, and encrypt it again with the first key in FIELD_KEYS.

    Raises InvalidToken for a text that was not encrypted with a key in FIELD_KEYS.
    """
    return _field_cipher().rotate(sealed.encode()).decode()


def digest(value: str) -> str:
    """Return the SHA-256 digest of a public value or of a secret with 256 random bits, in hex."""
    return hashlib.sha256(value.encode()).hexdigest()


def keyed_digest(purpose: str, value: str) -> str:
    """Return the HMAC of a short or guessable value with LOOKUP_KEY, in hex. Store this digest in rows."""
    return _keyed_digest(settings.LOOKUP_KEY, purpose, value)


def keyed_digests(purpose: str, value: str) -> list[str]:
    """Return a value's HMACs with LOOKUP_KEY and LOOKUP_KEY_FALLBACKS. Use all of them to look rows up."""
    return [
        _keyed_digest(key, purpose, value) for key in (settings.LOOKUP_KEY, *settings.LOOKUP_KEY_FALLBACKS)
    ]


def is_keyed_digest(digest: str, purpose: str, value: str) -> bool:
    """Return whether `digest` is the value's HMAC with any of the keys. The time is constant for each key."""
    return any(hmac.compare_digest(digest.encode(), own.encode()) for own in keyed_digests(purpose, value))


def lookup_key_marks() -> list[str]:
    """Return short identifiers for LOOKUP_KEY and LOOKUP_KEY_FALLBACKS, in this order.

    A row stores the identifier of a key if it can be found only with that key.
    """
    return [digest[:KEY_MARK_LETTERS] for digest in keyed_digests("key", "")]


def _keyed_digest(lookup_key: str, purpose: str, value: str) -> str:
    key = hashlib.sha256(f"{purpose}:{lookup_key}".encode()).digest()
    return hmac.new(key, value.encode(), hashlib.sha256).hexdigest()


class EncryptedTextField(models.TextField):
    """A text field that is encrypted in the database and plain in Python."""

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return None if value is None else decrypt(value)

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return None if prepared is None else encrypt(prepared)


class FindableTextField(EncryptedTextField):
    """An encrypted text field that queries can search for a whole value.

    The column holds the text's keyed digest (64 characters), followed by the ciphertext. A unique constraint
    or an index must therefore be on `Left(name, 64)`. An empty text stays empty.

    `filter(phone="+447700900123")` finds the digests of the value under all keys. A unique constraint cannot
    see that two digests under different keys belong to one value. While there are LOOKUP_KEY_FALLBACKS, code
    that inserts unique values therefore takes a lock first. Rule privacy.numbers.
    """

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return decrypt(value[DIGEST_LETTERS:]) if value else value

    def get_prep_value(self, value: Any) -> Any:
        return self.digest(value) + super().get_prep_value(value) if value else value

    def get_lookup(self, lookup_name: str) -> "type[models.Lookup[Any]] | None":
        """Return the lookup with this name, or None if a digest does not support it."""
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
    """The `exact` lookup. It compares with `IN (…)`, one digest per key. With one key, it is as fast as `=`."""

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
    """Serializer that encrypts sessions in the database. They contain codes, and secrets that are shown only once."""

    def dumps(self, obj: Any) -> bytes:
        return _field_cipher().encrypt(super().dumps(obj))

    def loads(self, data: bytes) -> Any:
        """Return the session's data. Raises InvalidToken, which ends the session, if no key decrypts it."""
        return super().loads(_field_cipher().decrypt(data))
