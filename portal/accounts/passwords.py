"""Validators for new passwords, in addition to Django's own (rule portal.passwords)."""

import re
import string
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.contrib.auth import password_validation
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.hashers import check_password, get_hasher
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from config.lib import clock
from portal.models import Invitation, Membership, PreviousPassword, Role, User

MAXIMUM = 128
BREACHED = Path(__file__).with_name("breached_passwords.txt.gz")
SHORTEST_WORD = 4  # a password may contain personal words that are shorter than this
SERVICE_WORDS = ("merchant", "checkout", "operator", *Role.values)  # docs/security-asvs.md lists them
_BETWEEN_WORDS = re.compile(r"[\W_]+")
MERCHANTS_READ = 100  # how many of a person's merchants are compared by name, at most


class MaximumLengthValidator:
    """Refuses a password with more than `max_length` characters."""

    def __init__(self, max_length: int = MAXIMUM) -> None:
        self.max_length = max_length

    def validate(self, password: str, user: AbstractBaseUser | None = None) -> None:
        """Raise ValidationError if the password is too long."""
        if len(password) > self.max_length:
            raise ValidationError(
                f"This password is too long. It may have at most {self.max_length} characters.",
                code="password_too_long",
            )

    def get_help_text(self) -> str:
        return f"Your password may have at most {self.max_length} characters."


class CommonPasswordValidator(password_validation.CommonPasswordValidator):
    """Refuses a common or breached password.

    It also refuses such a password in capital letters, repeated, or with digits and signs at the end.

    Django's list has 20,000 common passwords of all lengths. BREACHED has 20,000 passwords with at least 12
    characters, in lower case: the 4,300 most common ones, long phrases, long numbers, and passwords with at
    most three different characters.
    """

    def __init__(self) -> None:
        super().__init__()
        self.passwords |= password_validation.CommonPasswordValidator(BREACHED).passwords

    def validate(self, password: str, user: AbstractBaseUser | None = None) -> None:
        """Raise ValidationError if the password is common."""
        if len(password) <= MAXIMUM and any(map(self._is_common, _simplified_forms(password))):
            raise ValidationError(self.get_error_message(), code="password_too_common")

    def get_error_message(self) -> str:
        return "This password, or one like it, is too common. Choose several unrelated words."

    def _is_common(self, password: str) -> bool:
        return len(password) >= SHORTEST_WORD and password in self.passwords


class ContextWordsValidator:
    """Refuses a password that contains the person's e-mail, the name of one of their merchants, or a service word."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Raise ValidationError if the password contains such a word."""
        plain = _letters_and_digits(password[: MAXIMUM + 1])
        for word in _context_words(user):
            if word in plain:
                raise ValidationError(
                    f"This password contains “{word}”. Leave out your e-mail address, the name of your company, "
                    "and words of this service such as “checkout”.",
                    code="password_with_context_word",
                )

    def get_help_text(self) -> str:
        return "Your password may not contain your e-mail address or the name of your company."


class PreviousPasswordsValidator:
    """Refuses the person's last `count` passwords, which include the current one."""

    def __init__(self, count: int = 4) -> None:
        self.count = count

    def validate(self, password: str, user: User | None = None) -> None:
        """Raise ValidationError if the password is one of the last `count`.

        Each comparison takes as long as a hash. Passwords that another validator refuses are therefore not
        compared.
        """
        if user is None or not _passes_others(password, user):
            return
        rows = PreviousPassword.objects.filter(user=user.pk, encoded__startswith=f"{get_hasher().algorithm}$")
        for encoded in self._newest(rows.values_list("encoded", flat=True)):
            if check_password(password, encoded):
                raise ValidationError(
                    f"This is one of your last {self.count} passwords. Choose one that you have not used before.",
                    code="password_used_before",
                )

    def password_changed(self, password: str, user: User | None = None) -> None:
        """Store the hash of a password that was just saved. Keep only the hashes of the last `count` passwords."""
        if user is None:
            return
        rows = PreviousPassword.objects.filter(user=user.pk)
        rows.create(user_id=user.pk, encoded=user.password)
        rows.exclude(pk__in=list(self._newest(rows.values_list("pk", flat=True)))).delete()

    def get_help_text(self) -> str:
        return f"Your password cannot be one of your last {self.count}."

    def _newest(self, rows: QuerySet[Any, Any]) -> QuerySet[Any, Any]:
        return rows.order_by("-created_at", "-pk")[: self.count]


def _simplified_forms(password: str) -> Iterator[str]:
    """Yield the password, its lower-case form, and that form without digits and signs at the end.

    If the password only repeats a part, such as "abc" in "abcabc", also yield that part.
    """
    lower = password.casefold()
    without_tail = lower.rstrip(string.digits + string.punctuation)
    yield from (password, lower, without_tail)
    period = (lower + lower).find(lower, 1)
    if 0 < period < len(lower):
        yield lower[:period]


def _context_words(user: User | None) -> Iterator[str]:
    """Yield the words that the person's password must not contain, reduced to letters and digits."""
    yield from SERVICE_WORDS
    if user is None:
        return
    local_part, _, domain = user.email.partition("@")
    for name in (local_part, domain.rpartition(".")[0], *_merchant_names(user)):
        for word in (name, *_BETWEEN_WORDS.split(name)):
            plain = _letters_and_digits(word)
            if len(plain) >= SHORTEST_WORD:
                yield plain


def _merchant_names(user: User) -> list[str]:
    """Return the names of the merchants to whose team the person belongs or is invited."""
    members = Membership.objects.filter(user=user.pk)
    invitations = Invitation.objects.filter(
        email__iexact=user.email, ended_at=None, expires_at__gt=clock.now()
    )
    return [
        name
        for rows in (members, invitations)
        for name in rows.values_list("merchant__name", flat=True)[:MERCHANTS_READ]
    ]


def _letters_and_digits(text: str) -> str:
    """Return the text in lower case, without accents, spaces and signs."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text.casefold()) if letter.isalnum())


def _passes_others(password: str, user: User) -> bool:
    others = [
        validator
        for validator in password_validation.get_default_password_validators()
        if not isinstance(validator, PreviousPasswordsValidator)
    ]
    try:
        password_validation.validate_password(password, user, others)
    except ValidationError:
        return False
    return True
