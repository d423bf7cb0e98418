"""Subscriptions and events for the tests of the queue, without a receiver."""

from datetime import timedelta

from config.lib import clock
from payments.models import Merchant
from webhooks import delivery, outbox
from webhooks.models import Delivery, EventType, SigningSecret, Subscription


def subscribe(name: str = "Acme", url: str = "https://shop.example.com/hooks") -> Subscription:
    """A new merchant's subscription to everything, with its signing secret."""
    merchant = Merchant.objects.create(name=name)
    subscription = Subscription.objects.create(merchant=merchant, url=url, event_types=["*"])
    SigningSecret.objects.create(subscription=subscription, secret=f"whsec_{name}")
    return subscription


def emit(
    subscription: Subscription, event_type: EventType = EventType.VOIDED, *, valid_for: float | None = None
) -> Delivery:
    """The delivery of an event that happened just now."""
    now = clock.now()
    valid_until = None if valid_for is None else now + timedelta(seconds=valid_for)
    event = outbox.emit(subscription.merchant, event_type, {}, at=now, valid_until=valid_until)
    return event.deliveries.get()


def claim_one() -> delivery.Claimed:
    """Claim the one delivery that is due."""
    (claimed,) = delivery.claim(slots=10, general_slots=10)
    return claimed


def record(
    claimed: delivery.Claimed, http_status: int | None, error: str | None = None, ms: int | None = 5
) -> None:
    """Record what came of a claimed attempt."""
    delivery.record(
        [delivery.Result(claimed.delivery_id, claimed.lease_token, http_status, error, ms, "text")]
    )
