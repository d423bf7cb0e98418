"""The tables of the ledger, the provider's balance, reconciliation, back-ups and discrepancies."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from payments import money
from payments.discrepancies import kinds
from payments.discrepancies.definitions import DiscrepancyKind
from payments.models.merchants import Merchant
from payments.models.payments import Operation


class Posting(models.Model):
    """One line of the ledger. Lines are only added, never changed. The lines of a transaction sum to zero."""

    class Account(models.TextChoices):
        # The provider owes us this money.
        PROVIDER = "provider", "Provider"
        # We owe this money to the merchant, or to the lead.
        MERCHANT = "merchant", "Merchant"
        LEAD = "lead", "Lead"
        # This money moved outside the service.
        OUTSIDE = "outside", "Outside"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    transaction = models.UUIDField(help_text="The movement or booking that this line posts.")
    checkout_uuid = models.UUIDField()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    account = models.CharField(max_length=10, choices=Account)
    amount = models.BigIntegerField(
        help_text="Minor units. Money that comes in is positive on the account `provider`."
    )
    currency = models.CharField(max_length=3)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("transaction", "account", name="a_transaction_posts_once_per_account"),
            models.CheckConstraint(condition=~Q(amount=0), name="a_posting_moves_something"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["checkout_uuid"]),
            models.Index(
                fields=["merchant", "account", "created_at", "id"],
                include=["amount", "currency"],
                name="posting_moved",
            ),
        ]

    def __str__(self) -> str:
        amount = money.display(self.amount, self.currency)
        return f"{self.Account(self.account).label}\N{NO-BREAK SPACE}· {amount}"


class BalanceEntry(models.Model):
    """A line in the balance that the provider keeps for a merchant, as the provider reports it.

    It is not part of the ledger.
    """

    class Kind(models.TextChoices):
        PAYMENT = "payment"
        REFUND = "refund"
        DISPUTE = "dispute"
        PAYOUT = "payout"
        FEE = "fee"
        OTHER = "other"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    account = models.CharField(
        max_length=64,
        blank=True,
        help_text="The account at the provider. Empty for the service's own account.",
    )
    reference = models.CharField(max_length=255, help_text="The provider's id of the line.")
    kind = models.CharField(max_length=7, choices=Kind)
    amount = models.BigIntegerField(help_text="Minor units. Money that leaves the balance is negative.")
    fee = models.BigIntegerField(default=0)
    currency = models.CharField(max_length=3)
    made_at = models.DateTimeField()
    available_at = models.DateTimeField(
        null=True, blank=True, help_text="When the amount can be paid out, or reaches the bank account."
    )
    checkout_uuid = models.UUIDField(null=True, blank=True)
    operation = models.UUIDField(
        null=True, blank=True, help_text="The capture or refund that the line is about."
    )
    payout = models.CharField(max_length=255, blank=True, help_text="The provider's id of the payout.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["account", "reference"], name="a_line_of_the_balance_is_kept_once"
            )
        ]
        indexes: ClassVar = [
            models.Index("operation", name="balance_of_operation", condition=Q(operation__isnull=False)),
            models.Index(
                fields=["merchant", "-made_at", "-id"], name="balance_payouts", condition=Q(kind="payout")
            ),
            models.Index("merchant", "payout", name="balance_in_payout", condition=~Q(payout="")),
        ]
        verbose_name_plural = "balance entries"

    def __str__(self) -> str:
        amount = money.display(self.amount, self.currency)
        return f"{self.Kind(self.kind).label}\N{NO-BREAK SPACE}· {amount}"


class Reconciled(models.Model):
    """The time until which the provider's books were read without a gap. The next run starts from this time."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    until = models.DateTimeField(help_text="When the last complete run began, by the database's clock.")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(id=1), name="the_books_are_read_until_one_moment")
        ]
        verbose_name_plural = "reconciled"

    def __str__(self) -> str:
        return f"until {self.until:%Y-%m-%d %H:%M:%S} UTC"


class LastBackup(models.Model):
    """The time of the last verified back-up, which config/deploy/backup.sh has made or only recorded."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    made_at = models.DateTimeField(help_text="When the back-up began, by the database's clock.")

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=Q(id=1), name="one_back_up_is_the_last")]
        verbose_name = "last back-up"

    def __str__(self) -> str:
        return f"{self.made_at:%Y-%m-%d %H:%M:%S} UTC"


class Discrepancy(models.Model):
    """A problem that a person must resolve, such as a difference from the provider's books."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, null=True, blank=True)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, null=True, blank=True)
    kind = models.CharField(max_length=60)
    subject = models.UUIDField(
        null=True, blank=True, help_text="The id of the operation, the checkout or the provider's record."
    )
    facts = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    mailed_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    note = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                "kind",
                "subject",
                condition=Q(closed_at=None),
                nulls_distinct=False,
                name="one_open_discrepancy_per_kind_and_subject",
            )
        ]
        indexes: ClassVar = [
            models.Index("created_at", name="discrepancy_to_mail", condition=Q(mailed_at=None))
        ]
        verbose_name_plural = "discrepancies"

    def __str__(self) -> str:
        return self.kind_entry.sentence

    @property
    def kind_entry(self) -> DiscrepancyKind:
        """Return the kind from the table of kinds. If it is no longer there, return a generic kind."""
        return kinds.kind_named(self.kind)
