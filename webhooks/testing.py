"""Sends the `webhook.test` event, for a person in the portal to see what their endpoint answers (rule event.test)."""

from django.db import transaction

from config.lib import clock
from payments.models import Merchant
from webhooks import outbox, subscriptions
from webhooks.models import Event, EventType


def send(merchant: Merchant) -> Event:
    """Write a test event, whatever types are subscribed to. Raises subscriptions.SubscriptionNotFound."""
    with transaction.atomic():
        subscriptions.read(merchant)
        return outbox.emit(merchant, EventType.TEST, {}, at=clock.now())
