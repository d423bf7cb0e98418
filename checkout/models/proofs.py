"""The progress of a proof of all checkouts."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7


class ProofRun(models.Model):
    """The progress of a proof of all checkouts. A stopped proof continues from here (rule money.proof)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    is_scheduled = models.BooleanField(help_text="Workers run it automatically.")
    next_uuid = models.UUIDField(
        null=True, help_text="The first checkout that is still to be checked. Null if all are checked."
    )
    next_month = models.DateField(
        null=True, help_text="The first month whose sums in the ledger are still to be checked."
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
