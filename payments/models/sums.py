"""The sums of the ledger's closed days and months, from which balances are read without reading the whole ledger."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from uuid_utils.compat import uuid7

from payments.models.books import Posting
from payments.models.merchants import Merchant


class LedgerSum(models.Model):
    """The sum of a merchant's postings to one account, for a past month or for a day in the current month.

    Days and months are in UTC. Only payments/closed_days/sums.py writes these rows.
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
    """A single row with the time until which the ledger is closed, and the time until which it is summed.

    If a posting is written after its day was closed, a trigger moves its time to an open day.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    closed_until = models.DateTimeField(help_text="No posting can be added before this day.")
    horizon = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="A transaction that can still post before that day has a lower id than this.",
    )
    summed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(id=1), name="a_ledger_is_closed_in_one_place")
        ]

    def __str__(self) -> str:
        return f"closed until {self.closed_until:%Y-%m-%d}"
