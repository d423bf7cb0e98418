"""The upcoming entries in a checkout's timeline: its automatic end, and the next webhook attempts."""

from collections.abc import Iterator

from checkout.states import Status
from payments import operator_stops
from payments.models import Operation
from portal.orders.entries import Entry
from portal.orders.order import Order
from webhooks.models import Delivery


def upcoming_entries_of(order: Order) -> list[Entry]:
    """Return entries for the order's automatic end and for its next webhook attempts, latest first."""
    upcoming = [*_end_entry(order), *_attempt_entries(order)]
    return sorted(upcoming, key=lambda entry: entry.at, reverse=True)


def _end_entry(order: Order) -> Iterator[Entry]:
    """Yield an entry for the end of the hold, or for the end of the time to pay."""
    checkout = order.checkout
    if checkout.status == Status.AUTHORIZED and checkout.capture_before:
        is_being_captured = order.open_kind == Operation.Kind.CAPTURE
        condition = "your capture succeeds" if is_being_captured else "your server captures first"
        title = f"The hold ends automatically, unless {condition}"
        yield Entry(at=checkout.capture_before, kind="upcoming", tone="still", icon="clock", title=title)
    elif checkout.status == Status.CREATED:
        is_stopped = operator_stops.is_stopped(checkout.merchant_id)
        condition = "payments work again and the customer pays" if is_stopped else "the customer pays"
        title = f"The order ends automatically, unless {condition} first"
        yield Entry(at=checkout.payable_until, kind="upcoming", tone="still", icon="clock", title=title)


def _attempt_entries(order: Order) -> Iterator[Entry]:
    """Yield an entry for the next attempt of each waiting delivery, unless an attempt is running now."""
    for delivery in order.deliveries.values():
        if will_be_sent(delivery) and delivery.next_attempt_at:
            title = f"Attempt {delivery.attempt_count + 1} to send {delivery.event_type}"
            yield Entry(at=delivery.next_attempt_at, kind="upcoming", tone="still", icon="send", title=title)


def will_be_sent(delivery: Delivery) -> bool:
    """Return whether the delivery has a next attempt at which its event is still valid."""
    if delivery.status != Delivery.Status.PENDING or delivery.lease_token is not None:
        return False
    at, until = delivery.next_attempt_at, delivery.valid_until
    return until is None or at is None or at < until
