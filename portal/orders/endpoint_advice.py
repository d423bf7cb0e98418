"""Advice for a held order whose capture is open, or whose event the endpoint has not accepted."""

from typing import NamedTuple

from checkout.models import Checkout
from checkout.states import Status
from payments import money
from payments.models import Operation
from portal.orders import upcoming_entries
from portal.orders.order import Order
from portal.templatetags.portal import time_of
from webhooks import retries
from webhooks.models import Delivery, EventType


class Advice(NamedTuple):
    """A problem with an endpoint, and its remedy.

    `delivery` is the delivery that a person can send again. `has_no_event` means that the hold has no event.
    """

    title: str
    text: str
    delivery: Delivery | None = None
    has_no_event: bool = False


def advice_for(order: Order) -> Advice | None:
    """Return advice for a held order if its capture is open or its event was not accepted, else None.

    Without an open capture, the advice is also None before the event's first attempt and during each attempt.
    """
    checkout = order.checkout
    if checkout.status != Status.AUTHORIZED or checkout.capture_before is None:
        return None
    if order.open_kind == Operation.Kind.CAPTURE:
        return _open_capture_advice(checkout, time_of(checkout.capture_before))
    deliveries = [row for row in order.deliveries.values() if row.event_type == EventType.AUTHORIZED]
    remedy = f"capture the order through the API by {time_of(checkout.capture_before)}"
    if not deliveries:
        return Advice(
            "This hold has no event",
            f"When it began, you had no endpoint for checkout.authorized. To take the money, {remedy}.",
            has_no_event=True,
        )
    delivery = deliveries[0]
    if delivery.status == Delivery.Status.DELIVERED or not delivery.attempt_count or delivery.lease_token:
        return None
    return _failing_advice(delivery, remedy)


def _open_capture_advice(checkout: Checkout, until: str) -> Advice:
    amount = money.display(checkout.amount, checkout.currency)
    return Advice(
        "Your capture is not decided yet",
        f"We have asked the bank for {amount}. Until it answers clearly, the outcome is unknown. We ask until it"
        f" does. From {until} on, we do not try the capture again, but only find out whether the bank has taken the"
        " money. If it has, the order is captured. If not, the hold ends. Fulfil the order only when it is captured.",
    )


def _failing_advice(delivery: Delivery, remedy: str) -> Advice:
    attempts = delivery.attempt_count
    next_at = delivery.next_attempt_at
    if next_at is None or not upcoming_entries.will_be_sent(delivery):
        is_parked = delivery.status == Delivery.Status.PARKED
        return Advice(
            f"checkout.authorized {'is parked' if is_parked else 'has no further attempt'}",
            f"Your endpoint failed {_times_words(attempts)}. Fix it and send the event again, or {remedy}."
            " Otherwise no money is taken.",
            delivery,
        )
    is_last = attempts + 1 >= retries.SCHEDULES[delivery.event_type].attempts
    position = "last" if is_last else "next"
    return Advice(
        f"Your endpoint has failed {_times_words(attempts)}",
        f"The {position} attempt is at {time_of(next_at)}. Fix the endpoint before then, or {remedy}.",
    )


def _times_words(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
