"""API calls from merchants, and the idempotency keys with which merchants can repeat calls safely."""

from typing import ClassVar

from django.db import models
from uuid_utils.compat import uuid7

from config.lib.database.partitions import Partitioned
from payments.models import Merchant


class ApiCall(models.Model):
    """An API call and the status of its response. The portal shows these rows in the timeline and in the request log.

    Each POST under /checkouts has a row, even if it was refused. Other refused calls are recorded up to a limit. In
    the sandbox, the integration checklist watches some orders. Reads of these orders are also recorded, up to a limit
    (checkout/api/watched_reads.py).

    The table is partitioned by the time in the id (`CALLS`). Its rows never change.
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
    ignored_fields = models.CharField(
        max_length=700, blank=True, default="", db_default="", help_text="Fields that the API does not know."
    )
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = "API call"

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.status}"


CALLS = Partitioned("checkout_apicall", days=2)


class IdempotencyKey(models.Model):
    """An idempotency key that a merchant sent with a POST. Its stored response is replayed for a day."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    key = models.CharField(max_length=255)
    request_digest = models.CharField(max_length=64)
    checkout_uuid = models.UUIDField(null=True, blank=True)
    status = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Empty while the call is in progress."
    )
    body = models.BinaryField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("merchant", "key", name="an_idempotency_key_is_used_once_per_merchant")
        ]

    def __str__(self) -> str:
        return self.key
