"""Creates subscriptions and events for tests of the queue. There is no receiver."""

from datetime import datetime, timedelta
from uuid import UUID

from config.lib import clock
from payments.models import Merchant
from tests import factories
from webhooks import delivery, outbox, subscriptions
from webhooks.models import Attempt, Delivery, Event, EventType, SigningSecret, Subscription

OLD_URL, NEW_URL = "http://127.0.0.1:9/old", "http://127.0.0.1:9/new"
CHECKOUT = UUID("01890000-0000-7000-8000-000000000001")
ALL = list(EventType)


def subscribe(name: str = "Acme", url: str = "https://shop.example.com/hooks") -> Subscription:
    """Subscribe a new merchant to all events. Return the subscription with its signing secret."""
    merchant = Merchant.objects.create(name=name)
    subscription = Subscription.objects.create(
        merchant=merchant, url=url, event_types=["*"], is_approved=True
    )
    SigningSecret.objects.create(subscription=subscription, secret=f"whsec_{name}")
    return subscription


def emit(
    subscription: Subscription, event_type: EventType = EventType.VOIDED, *, valid_for: float | None = None
) -> Delivery:
    """Emit an event with the current time. Return its delivery."""
    now = clock.now()
    valid_until = None if valid_for is None else now + timedelta(seconds=valid_for)
    event = outbox.emit(subscription.merchant, event_type, {}, at=now, valid_until=valid_until)
    return event.deliveries.get()


def claim_one() -> delivery.Claimed:
    """Claim the only delivery that is due."""
    (claimed,) = delivery.claim(slots=10, general_slots=10)
    return claimed


def record(
    claimed: delivery.Claimed, http_status: int | None, error: str | None = None, ms: int | None = 5
) -> None:
    """Record the result of a claimed attempt."""
    delivery.record_results(
        [delivery.Result(claimed.delivery_id, claimed.lease_token, http_status, error, ms, "text")]
    )


def aged(due: Delivery, days: float, *, status: str = "delivered") -> Delivery:
    """Set the event, and the end of its delivery, back by `days`. Return the delivery."""
    ago = clock.now() - timedelta(days=days)
    ended_at = None if status == "pending" else ago
    Delivery.objects.filter(pk=due.pk).update(
        status=status, ended_at=ended_at, next_attempt_at=None if ended_at else ago
    )
    Event.objects.filter(pk=due.event_id).update(created_at=ago)
    return due


def renamed(event_id: UUID, at: datetime) -> UUID:
    """Give an event, its deliveries and their attempts new ids, which contain the time `at`.

    Return the event's new id.
    """

    def new_id(old: UUID) -> UUID:
        return UUID(int=clock.first_id(at).int | old.int & (1 << 80) - 1)

    new = new_id(event_id)
    for due in Delivery.objects.filter(event=event_id):
        for attempt in due.attempts.all():
            Attempt.objects.filter(pk=attempt.pk).update(id=new_id(attempt.pk), delivery=new_id(due.pk))
        Delivery.objects.filter(pk=due.pk).update(id=new_id(due.pk), event=new)
    Event.objects.filter(pk=event_id).update(id=new)
    return new


def superseded(due: Delivery) -> None:
    """Supersede the event of a delivery, but leave the delivery pending. A race with an attempt can cause this."""
    now = clock.now()
    Event.objects.filter(pk=due.event_id).update(superseded_at=now)
    Delivery.objects.filter(pk=due.pk, status="pending").update(superseded_at=now)


def register(merchant: Merchant, *event_types: str, url: str = OLD_URL) -> subscriptions.SavedSubscription:
    return factories.subscribe(merchant, url=url, event_types=event_types or ("*",))


def emit_event(merchant: Merchant, event_type: EventType = EventType.VOIDED) -> Event:
    """Emit an event with the current time."""
    return outbox.emit(merchant, event_type, {"checkout_uuid": str(CHECKOUT)}, at=clock.now())


def claimed_events() -> set[UUID]:
    return {UUID(claimed.event_id) for claimed in delivery.claim(slots=20, general_slots=20)}


def let_it_be_due() -> None:
    Delivery.objects.filter(status="pending").update(next_attempt_at=clock.now())
