"""Events that test an endpoint: `webhook.test` from the portal, and first attempts that the sandbox makes fail.

Rules event.test, trial.first_attempt.
"""

from uuid import UUID

from django.db import transaction

from config.lib import clock
from payments.models import Merchant
from webhooks import delivery, health, outbox, subscriptions
from webhooks.delivery import Result
from webhooks.models import Delivery, Event, EventType


def send(merchant: Merchant) -> Event:
    """Write a test event, whatever types are subscribed to. Raises subscriptions.SubscriptionNotFound."""
    with transaction.atomic():
        subscriptions.read(merchant)
        return outbox.emit(merchant, EventType.TEST, {}, at=clock.now())


def refuse_first(delivery_uuid: UUID) -> None:
    """End a first attempt that was taken as if the endpoint had answered 500; nothing is sent, and retries follow."""
    taken = Delivery.objects.get(pk=delivery_uuid)
    if taken.lease_token is not None:
        lease = str(taken.pk), str(taken.lease_token)
        delivery.record([Result(*lease, 500, health.REFUSED_BY_SANDBOX, 0)])
