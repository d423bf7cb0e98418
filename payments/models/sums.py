"""Sums of the ledger's days and months that are closed: what a balance is read from, however long the ledger is."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from uuid_utils.compat import uuid7

from payments.models.books import Posting
from payments.models.merchants import Merchant


class LedgerSum(models.Model):
    """What the postings of a merchant's account sum to in a month that is over, or in a day of the current one.

    By the UTC time of the postings. Written by payments/closing/sums.py alone, from the postings.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    account = models.CharField(max_length=10, choices=Posting.Account)
    currency = models.CharField(max_length=3)
    begin = models.DateField()
    end = models.DateField(help_text="The first day after it.")
    amount = models.BigIntegerField(help_text="Minor units")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["merchant", "account", "currency", "begin", "end"],
                include=["amount"],
                name="a_day_or_month_is_summed_once",
            ),
            models.CheckConstraint(condition=Q(end__gt=F("begin")), name="a_sum_is_of_some_days"),
        ]
        indexes: ClassVar = [models.Index("begin", name="ledger_sum_begin")]

    def __str__(self) -> str:
        return f"{self.account} {self.begin} {self.currency} {self.amount}"


class LedgerClosing(models.Model):
    """The one row that says up to when the ledger is closed, and up to when that is in the sums.

    A trigger dates a posting that comes after its day was closed into a day that is open.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    closed_until = models.DateTimeField(help_text="Nothing is posted before it any more.")
    horizon = models.BigIntegerField(
        null=True, blank=True, help_text="Who may still post before it has a transaction id below this."
    )
    summed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(id=1), name="a_ledger_is_closed_in_one_place")
        ]

    def __str__(self) -> str:
        return f"closed until {self.closed_until:%Y-%m-%d}"
