"""Movements of money at the provider for a payment, and bookings, which do not move money there."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from payments import money
from payments.models.books import Posting
from payments.models.payments import Dispute, Operation, Payment


class Movement(models.Model):
    """One movement of a payment's money, as it is in the provider's books. Rows are only added, never changed.

    The id is also the id of the movement's transaction in the ledger. The provider sends the same `reference` in the
    answer to an operation and in the books about the payment. A movement is therefore recorded only once, even if it
    is in both.
    """

    class Kind(models.TextChoices):
        CAPTURED = "captured", "Captured"
        REFUNDED = "refunded", "Refunded"
        REFUND_RETURNED = "refund_returned", "Refund returned"
        DISPUTE_WITHDRAWN = "dispute_withdrawn", "Taken back for a dispute"
        DISPUTE_REINSTATED = "dispute_reinstated", "Returned after a dispute"

    # The kinds of movements that increase the amount that the provider owes us.
    INCOMING = (Kind.CAPTURED, Kind.REFUND_RETURNED, Kind.DISPUTE_REINSTATED)

    id = models.UUIDField(
        primary_key=True, default=uuid7, editable=False, help_text="The id of the transaction in the ledger."
    )
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, db_index=False, related_name="movements")
    checkout_uuid = models.UUIDField(db_index=True)
    kind = models.CharField(max_length=18, choices=Kind)
    amount = models.BigIntegerField(
        help_text="Minor units of the payment's currency. Money that leaves the provider's balance is negative."
    )
    reference = models.CharField(max_length=280, help_text="The provider's id of the movement.")
    operation = models.ForeignKey(
        Operation,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="movements",
        help_text="The operation that caused it, of the service or of another.",
    )
    dispute = models.ForeignKey(
        Dispute, on_delete=models.PROTECT, null=True, blank=True, db_index=False, related_name="movements"
    )
    bearer = models.CharField(
        max_length=10, choices=Posting.Account, help_text="Who pays for it, or gains by it."
    )
    occurred_at = models.DateTimeField(help_text="When it happened, according to the provider.")
    recorded_at = models.DateTimeField(help_text="When it was recorded, by the database's clock.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("payment", "kind", "reference", name="a_fact_is_recorded_once"),
            models.UniqueConstraint("payment", condition=Q(kind="captured"), name="a_card_is_charged_once"),
            models.CheckConstraint(
                condition=Q(kind__in=["captured", "refund_returned", "dispute_reinstated"], amount__gt=0)
                | Q(kind__in=["refunded", "dispute_withdrawn"], amount__lt=0),
                name="a_movement_goes_its_way",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["captured", "refunded", "refund_returned"], operation__isnull=False)
                | Q(kind__in=["dispute_withdrawn", "dispute_reinstated"], dispute__isnull=False),
                name="a_movement_has_its_cause",
            ),
        ]
        indexes: ClassVar = [
            models.Index("dispute", name="movement_of_dispute", condition=Q(dispute__isnull=False)),
        ]

    def __str__(self) -> str:
        amount = money.display(self.amount, self.payment.currency)
        return f"{self.Kind(self.kind).label}\N{NO-BREAK SPACE}· {amount}"


class Booking(models.Model):
    """A booking, which does not move money at the provider. Rows are only added, never changed.

    A reversal is a row with the negated amount. `settled_outside`: an operator states that a payer has received an
    amount in another way than by card. `closing`: an amount for a share is no longer owed to the lead.
    """

    class Kind(models.TextChoices):
        SETTLED_OUTSIDE = "settled_outside", "Settled outside"
        CLOSING = "closing", "No longer owed to the lead"

    id = models.UUIDField(
        primary_key=True, default=uuid7, editable=False, help_text="The id of the transaction in the ledger."
    )
    kind = models.CharField(max_length=15, choices=Kind)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="bookings")
    checkout_uuid = models.UUIDField(db_index=True)
    operation = models.ForeignKey(
        Operation,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="bookings",
        help_text="The refund that the card could not accept.",
    )
    share_uuid = models.UUIDField(null=True, blank=True, help_text="The share that the booking is about.")
    amount = models.BigIntegerField(help_text="Minor units. A reversal is negative.")
    reverses = models.OneToOneField("self", on_delete=models.PROTECT, null=True, blank=True)
    note = models.TextField(blank=True)
    actor = models.CharField(max_length=60)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(amount=0), name="a_booking_is_of_something"),
            models.CheckConstraint(
                condition=Q(reverses=None, amount__gt=0) | Q(reverses__isnull=False, amount__lt=0),
                name="a_reversal_takes_back",
            ),
            models.CheckConstraint(
                condition=Q(kind="settled_outside", operation__isnull=False)
                | Q(kind="closing", share_uuid__isnull=False, operation=None),
                name="a_booking_says_what_it_is_for",
            ),
        ]

    def __str__(self) -> str:
        amount = money.display(self.amount, self.payment.currency)
        return f"{self.Kind(self.kind).label}\N{NO-BREAK SPACE}· {amount}"
