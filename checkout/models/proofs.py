"""Progress of a proof of all checkouts."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7


class ProofRun(models.Model):
    """Progress of a proof of all checkouts. A stopped proof continues from there (rule money.proof)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    is_scheduled = models.BooleanField(help_text="Workers take it up by themselves.")
    next_uuid = models.UUIDField(null=True, help_text="Checkouts from here on are to be proved; null: none.")
    next_month = models.DateField(
        null=True, help_text="So are the ledger's sums of this month and later ones."
    )
    checkout_count = models.BigIntegerField(default=0)
    posting_count = models.BigIntegerField(default=0)
    breach_count = models.BigIntegerField(default=0)
    begun_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["ended_at"],
                condition=Q(ended_at=None),
                nulls_distinct=False,
                name="one_proof_of_everything_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"{self.checkout_count} checkouts, {self.breach_count} breaches"
