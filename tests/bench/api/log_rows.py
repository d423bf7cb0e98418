"""Writes a delivery log. Each event in it was delivered at the first attempt."""

from datetime import datetime, timedelta

from config.lib import clock
from payments.models import Merchant
from webhooks import outbox
from webhooks.models import Attempt, Delivery, EventType, Subscription

PAYLOAD = {
    "checkout_uuid": "0193c2a1-7e44-7b0c-9d1f-5a6e0c41b2d8",
    "merchant_order_id": "A-20417",
    "status": "voided",
    "reason": "auth_expired",
}


def write(merchant: Merchant, *, events: int, now: datetime) -> None:
    """Subscribe the merchant to all events. Write the log of their deliveries."""
    Subscription.objects.create(merchant=merchant, url="https://shop.example/hook", event_types=["*"])
    for _ in range(events):
        outbox.emit(merchant, EventType.VOIDED, PAYLOAD, at=now)
    waiting = Delivery.objects.filter(merchant=merchant)
    Attempt.objects.bulk_create(
        Attempt(
            id=clock.new_id_of_same_time(delivery.pk),
            merchant=merchant,
            delivery=delivery,
            number=1,
            event_type=EventType.VOIDED,
            is_delivered=True,
            started_at=now - timedelta(seconds=number),
            ended_at=now,
            http_status=200,
            duration_ms=48,
        )
        for number, delivery in enumerate(waiting)
    )
    waiting.update(status=Delivery.Status.DELIVERED, attempt_count=1, next_attempt_at=None, ended_at=now)
