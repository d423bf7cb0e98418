"""The payer's journey."""

from typing import ClassVar

from django.db import models
from uuid_utils.compat import uuid7


class SignInCode(models.Model):
    """A code sent to a phone for one checkout or share and one browser. Only a keyed hash of it is kept."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    subject = models.UUIDField(help_text="The checkout's or payment request's uuid.")
    phone = models.CharField(max_length=16)
    browser_digest = models.CharField(max_length=64)
    code_digest = models.CharField(max_length=64)
    tries = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["phone", "created_at"]),
            models.Index(fields=["subject", "created_at"]),
        ]

    def __str__(self) -> str:
        return f"code for {self.subject}"
