"""The maximum length of passwords, which Django's own validators lack."""

from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError


class MaximumLengthValidator:
    """At most `max_length` characters."""

    def __init__(self, max_length: int = 128) -> None:
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
