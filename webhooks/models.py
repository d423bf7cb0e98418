"""The webhook models: subscriptions, endpoints, secrets, events (the outbox), deliveries, and attempts."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Func, Q
from uuid_utils.compat import uuid7

from config.lib import crypto
from config.lib.crypto import EncryptedTextField
from config.lib.database.partitions import Partitioned
from payments.models import Merchant


class EventType(models.TextChoices):
    """The types of events that merchants receive (rule event.types). Pages show the same names as the events."""

    AUTHORIZED = "checkout.authorized", "checkout.authorized"
    VOIDED = "checkout.voided", "checkout.voided"
    OPTED_IN = "marketing.opted_in", "marketing.opted_in"
    TEST = "webhook.test", "webhook.test"


# These events are sent first, because a hold ends soon, and a person waits for the result of a test.
URGENT = frozenset({EventType.AUTHORIZED, EventType.TEST})
# The bodies of these events are encrypted. They are deleted a week after all deliveries of the event have ended.
PERSONAL = frozenset({EventType.OPTED_IN})


class Subscription(models.Model):
    """The URL to which a merchant's events are sent, and the types of these events.

    A merchant has at most one subscription that has not ended.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    url = models.CharField(max_length=2048)
    event_types = ArrayField(models.CharField(max_length=40))
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    is_approved = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether an owner or admin chose this address. Otherwise no personal data is sent to it.",
    )
    has_deliveries = models.BooleanField(
        default=False,
        help_text="Whether deliveries were ever sent to it. It is retained as long as they are.",
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                "merchant", condition=Q(ended_at=None), name="one_subscription_per_merchant"
            )
        ]

    def __str__(self) -> str:
        return self.url


class Endpoint(models.Model):
    """The latest results of the attempts at a subscription's endpoint, and the state of its pace limit."""

    subscription = models.OneToOneField(Subscription, on_delete=models.PROTECT, primary_key=True)
    paced_until = models.DateTimeField(null=True, blank=True)
    hung_in_a_row = models.PositiveIntegerField(default=0, db_default=0)
    last_success_at = models.DateTimeField(null=True, blank=True)
    last_failure_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=255, blank=True, default="", db_default="")
    failing_since = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"Endpoint {self.subscription}"


class SigningSecret(models.Model):
    """A secret that signs a subscription's deliveries until `expires_at`. If `expires_at` is null, there is no end."""

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
        return f"Signing secret of {self.created_at.day} {self.created_at:%b %Y %H:%M}"


class Event(models.Model):
    """One event in the outbox, with the exact bytes that are sent. It is deleted with its partition.

    Always read `plain_body`, not `body`. If the event has personal data, `body` is encrypted. When the data is
    deleted (`body_deleted_at`), `body` becomes empty.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    type = models.CharField(max_length=40, choices=EventType)
    checkout_uuid = models.UUIDField(null=True, blank=True)
    body = models.BinaryField()
    created_at = models.DateTimeField(help_text="When the event happened.")
    written_at = models.DateTimeField(
        db_default=Func(function="clock_timestamp"), editable=False, help_text="When the row was written."
    )
    valid_until = models.DateTimeField(
        null=True, blank=True, help_text="No attempt starts at or after this time."
    )
    superseded_at = models.DateTimeField(null=True, blank=True)
    body_deleted_at = models.DateTimeField(
        null=True, blank=True, help_text="When its personal data was deleted."
    )
    request_id = models.CharField(max_length=64, blank=True)
    traceparent = models.CharField(max_length=55, blank=True, default="", db_default="", editable=False)

    def __str__(self) -> str:
        return self.type

    @property
    def plain_body(self) -> bytes:
        """The bytes that are sent. If the event's personal data was deleted, there are no bytes."""
        return b"" if self.body_deleted_at else decrypt_if_personal(self.type, bytes(self.body))


def encrypt_if_personal(event_type: str, body: bytes) -> bytes:
    """Return the bytes to store for an event. If its type is personal, they are encrypted."""
    return crypto.encrypt(body.decode()).encode() if event_type in PERSONAL else body


def decrypt_if_personal(event_type: str, stored: bytes) -> bytes:
    """Return the body of an event as it is sent, made from the stored bytes. A personal body is stored encrypted."""
    return crypto.decrypt(stored.decode()).encode() if event_type in PERSONAL else stored


class Delivery(models.Model):
    """One event that must be sent to one subscription, and the progress of sending it.

    Pending deliveries are in their own table, which is the queue. Ended deliveries are in partitions, and are deleted
    with their partition. The id of a delivery begins with the event's time (`clock.new_id_of_same_time`), and this
    time decides the partition. If a pending delivery of personal data has no `next_attempt_at`, it waits until its
    address is approved.
    """

    class Status(models.TextChoices):
        PENDING = "pending", "Waiting"
        DELIVERED = "delivered", "Delivered"
        PARKED = "parked", "Parked"
        SUPERSEDED = "superseded", "Superseded"

    id = models.UUIDField(primary_key=True, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    event = models.ForeignKey(
        Event, on_delete=models.DO_NOTHING, related_name="deliveries", db_index=False, db_constraint=False
    )
    subscription = models.ForeignKey(
        Subscription, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False
    )
    event_type = models.CharField(max_length=40, choices=EventType)
    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    is_urgent = models.BooleanField(default=False, help_text="It is sent before others, and is not paced.")
    attempt_count = models.PositiveIntegerField(default=0)
    resent_count = models.PositiveIntegerField(default=0, help_text="How many attempts people requested.")
    resent_by = models.CharField(max_length=60, blank=True, help_text="Who requested the next attempt.")
    returns_at = models.DateTimeField(
        null=True, blank=True, help_text="When the next automatic attempt starts if the requested one fails."
    )
    valid_until = models.DateTimeField(
        null=True, blank=True, help_text="No attempt of an urgent delivery starts at or after this time."
    )
    superseded_at = models.DateTimeField(
        null=True, blank=True, help_text="When the event was superseded during an attempt."
    )
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_token = models.UUIDField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(
        null=True, blank=True, help_text="When a person closed the parked delivery."
    )

    class Meta:
        verbose_name_plural = "deliveries"

    def __str__(self) -> str:
        attempts = f"{self.attempt_count} {'attempt' if self.attempt_count == 1 else 'attempts'}"
        return f"{self.Status(self.status).label}\N{NO-BREAK SPACE}· {attempts}"


class Attempt(models.Model):
    """One POST of a delivery, as an entry of the delivery log.

    The row is created before the POST and completed after it. Its id begins with the event's time. The id is also the
    token of the lease under which the POST is sent.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    delivery = models.ForeignKey(
        Delivery, on_delete=models.DO_NOTHING, related_name="attempts", db_index=False, db_constraint=False
    )
    number = models.PositiveIntegerField()
    event_type = models.CharField(max_length=40, choices=EventType)
    actor = models.CharField(
        max_length=60, blank=True, default="", db_default="", help_text="Who requested it."
    )
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    is_delivered = models.BooleanField(
        null=True, blank=True, help_text="Empty while the attempt is in progress."
    )
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    error_message = models.CharField(max_length=255, null=True, blank=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    response_excerpt = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"Attempt {self.number}\N{NO-BREAK SPACE}· {self.event_type}"


# Partitions are deleted in the sequence of these tables. A reader therefore never finds an attempt without its
# delivery, or a delivery without its event.
ATTEMPTS, ENDED_DELIVERIES, EVENTS = map(
    Partitioned, ("webhooks_attempt", "webhooks_delivery_ended", "webhooks_event")
)
PARTITIONED = (ATTEMPTS, ENDED_DELIVERIES, EVENTS)
