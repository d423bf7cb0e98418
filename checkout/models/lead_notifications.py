"""The queue of text messages to leads."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from checkout.models import statements
from checkout.models.orders import Checkout
from checkout.models.shares import PaymentRequest
from config.lib.database import queries

A_DAY = timedelta(days=1)  # the lead gets a message this long before the pay links end


class LeadNotification(models.Model):
    """A text message to a lead about an event, for example about a share that a mate has declined. Rule lead.told.

    The message is queued in the transaction that records the event. If the event happens again, it is sent again.
    """

    class Kind(models.TextChoices):
        DECLINED = "declined", "A mate has declined"
        ALL_PAID = "all_paid", "All mates have paid"
        LINKS_END = "links_end", "The links end in a day"
        ALL_IN = "all_in", "All mates are in"
        NOT_TAKEN = "not_taken", "A card was not charged for a pledge"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    checkout = models.ForeignKey(Checkout, on_delete=models.PROTECT, db_index=False)
    kind = models.CharField(max_length=9, choices=Kind)
    share_uuid = models.UUIDField(null=True, blank=True, help_text="The share that the message is about.")
    due_at = models.DateTimeField()
    ended_at = models.DateTimeField(
        null=True, blank=True, help_text="When the message was queued, or was no longer needed."
    )

    class Meta:
        verbose_name = "text to a lead"
        verbose_name_plural = "texts to leads"
        constraints: ClassVar = [
            models.UniqueConstraint(
                "checkout", "kind", "share_uuid", nulls_distinct=False, name="a_lead_is_notified_once"
            )
        ]
        indexes: ClassVar = [models.Index("due_at", name="lead_notification_due", condition=Q(ended_at=None))]

    def __str__(self) -> str:
        return str(self.Kind(self.kind).label)

    @staticmethod
    def queue(
        checkout: Checkout, kind: LeadNotification.Kind, due_at: datetime, share: PaymentRequest | None = None
    ) -> None:
        """Queue a message to the lead. Must be called with the checkout locked."""
        about = None if share is None else share.pk
        parameters = [uuid7(), checkout.pk, kind.value, about, due_at]
        queries.execute(statements.QUEUE_LEAD_NOTIFICATION, parameters)

    @staticmethod
    def queue_end(checkout: Checkout, ends_at: datetime) -> None:
        """Queue the message that the pay links will end in a day. It is due a day before `ends_at`."""
        LeadNotification.queue(checkout, LeadNotification.Kind.LINKS_END, ends_at - A_DAY)
