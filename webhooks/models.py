"""What a merchant is told: events are rows before they are messages."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from config.lib.crypto import EncryptedTextField
from payments.models import Merchant


class EventType(models.TextChoices):
    """SPEC.md part 6."""

    AUTHORIZED = "checkout.authorized"
    VOIDED = "checkout.voided"
    OPTED_IN = "marketing.opted_in"
    TEST = "webhook.test"


class Subscription(models.Model):
    """Where a merchant wants its events, and which. One at a time."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    url = models.CharField(max_length=2048)
    event_types = ArrayField(models.CharField(max_length=40))
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                "merchant", condition=Q(ended_at=None), name="one_subscription_per_merchant"
            )
        ]

    def __str__(self) -> str:
        return self.url


class SigningSecret(models.Model):
    """A secret that signs a subscription's deliveries until `expires_at`, for ever while that is null."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    subscription = models.ForeignKey(Subscription, on_delete=models.PROTECT, related_name="secrets")
    secret = EncryptedTextField()
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                "subscription", condition=Q(expires_at=None), name="one_current_secret_per_subscription"
            )
        ]

    def __str__(self) -> str:
        return f"secret of {self.created_at:%Y-%m-%d %H:%M}"


class Event(models.Model):
    """Something that happened, with the exact bytes that are sent of it: the outbox."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    type = models.CharField(max_length=40, choices=EventType)
    checkout_uuid = models.UUIDField(null=True, blank=True)
    body = models.BinaryField()
    created_at = models.DateTimeField(help_text="When it happened.")
    valid_until = models.DateTimeField(null=True, blank=True, help_text="No attempt starts at or after this.")
    superseded_at = models.DateTimeField(null=True, blank=True)
    request_id = models.CharField(max_length=64, blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["merchant", "-created_at", "-id"]),
            models.Index(fields=["checkout_uuid"]),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.id}"


class Delivery(models.Model):
    """The sending of one event to one subscription, until it ends."""

    class Status(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        PARKED = "parked"
        SUPERSEDED = "superseded"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    event = models.ForeignKey(Event, on_delete=models.PROTECT, related_name="deliveries")
    subscription = models.ForeignKey(Subscription, on_delete=models.PROTECT)
    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    attempt_count = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_token = models.UUIDField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint("event", "subscription", name="an_event_goes_once_to_a_subscription"),
            models.CheckConstraint(
                condition=Q(status="pending", next_attempt_at__isnull=False, ended_at=None)
                | (~Q(status="pending") & Q(next_attempt_at=None, ended_at__isnull=False)),
                name="a_pending_delivery_has_a_next_attempt",
            ),
        ]
        indexes: ClassVar = [
            models.Index("next_attempt_at", name="delivery_due", condition=Q(status="pending")),
            models.Index("lease_until", name="delivery_leased", condition=Q(lease_token__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.status} after {self.attempt_count}"


class Attempt(models.Model):
    """One POST: written before it is sent, finished after it. The delivery log."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    error_message = models.CharField(max_length=255, null=True, blank=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    response_excerpt = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("delivery", "number", name="attempts_of_a_delivery_are_numbered")
        ]
        indexes: ClassVar = [models.Index(fields=["merchant", "-started_at", "-id"])]

    def __str__(self) -> str:
        return f"attempt {self.number}"
