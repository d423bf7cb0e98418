"""The sandbox bank's own books. Nothing here knows our operations or checkouts but by the ids we send."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7


class CardSession(models.Model):
    """One visit to the bank's card page."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    subject = models.UUIDField()
    return_url = models.URLField(max_length=1000)
    page = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return str(self.subject)


class CardToken(models.Model):
    """A card entered once for one subject. The number itself is never stored."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    digest = models.CharField(max_length=64, unique=True)
    subject = models.UUIDField()
    last4 = models.CharField(max_length=4)
    brand = models.CharField(max_length=20)
    fingerprint = models.CharField(max_length=64)
    decline_reason = models.CharField(max_length=40, blank=True)
    refund_fails = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.brand} {self.last4}"


class Charge(models.Model):
    """A card's money: held, taken, released."""

    class State(models.TextChoices):
        DECLINED = "declined"
        HELD = "held"
        CAPTURED = "captured"
        VOIDED = "voided"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    payment = models.UUIDField(unique=True, help_text="The caller's id of the payment.")
    token = models.OneToOneField(CardToken, on_delete=models.PROTECT)
    amount = models.BigIntegerField()
    refunded_amount = models.BigIntegerField(default=0)
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=10, choices=State)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(refunded_amount__gte=0) & Q(refunded_amount__lte=models.F("amount")),
                name="a_charge_gives_back_at_most_what_it_took",
            )
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} {self.state}"


class Call(models.Model):
    """The journal: one row per idempotency key, with the answer that it gets for ever."""

    key = models.UUIDField(primary_key=True)
    kind = models.CharField(max_length=10)
    charge = models.ForeignKey(Charge, on_delete=models.PROTECT)
    amount = models.BigIntegerField()
    verdict = models.CharField(max_length=12)
    reason = models.CharField(max_length=40, blank=True)
    settles_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.verdict}"
