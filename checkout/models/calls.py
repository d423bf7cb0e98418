"""API calls of merchants, and the idempotency keys under which a merchant repeats a call."""

from typing import ClassVar

from django.db import models
from uuid_utils.compat import uuid7

from config.lib.database.partitions import Partitioned
from payments.models import Merchant


class ApiCall(models.Model):
    """API call with the status of its answer: the source of the timeline and of the log of requests.

    There is a row for each POST under /checkouts, also for a refused one. Other refused calls leave rows
    within a limit. In the sandbox, so do reads of orders that the checklist watches (`api.watching`).

    The table is partitioned by the time in the id: `CALLS`. Its rows never change.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    client_uuid = models.UUIDField()
    checkout_uuid = models.UUIDField(null=True, blank=True)
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=300)
    request_id = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    error_code = models.CharField(max_length=60, blank=True)
    param = models.CharField(
        max_length=100, blank=True, default="", db_default="", help_text="The field that was refused."
    )
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.status}"


CALLS = Partitioned("checkout_apicall", days=2)


class IdempotencyKey(models.Model):
    """Key that a merchant has sent with a POST, and the answer that is replayed under it for a day."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    key = models.CharField(max_length=255)
    request_digest = models.CharField(max_length=64)
    checkout_uuid = models.UUIDField(null=True, blank=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Null while it is in flight.")
    body = models.BinaryField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("merchant", "key", name="an_idempotency_key_is_used_once_per_merchant")
        ]

    def __str__(self) -> str:
        return self.key
