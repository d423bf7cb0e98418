"""The tops of the pages of events, deliveries, attempts, subscriptions and endpoints."""

from urllib.parse import urlsplit

from django.http import HttpRequest

from checkout.models import Checkout
from checkout.states import VoidReason
from portal.backoffice.order import format_utc, format_when
from portal.backoffice.record_heads.head import Head, Link, link_to, link_to_order, order_words
from portal.badges import CLOSED, ENDED, FAILED, Badge, of_attempt, of_delivery
from webhooks import resending
from webhooks.delivery import given_reason
from webhooks.models import PERSONAL, Attempt, Delivery, Endpoint, Event, Subscription

Status = Delivery.Status
SUPERSEDED = "Superseded{at}: {why}, so the service does not send it any more."
HOLD_IS_OVER = "the hold that it announces {how}"
HOLD_WAS_CAPTURED, HOLD_WAS_CANCELLED, HOLD_ENDED = "was captured", "was cancelled", "ended without a capture"
DELIVERED = "The endpoint accepted it{at}."
RESENT_ON_ITS_PAGE = "The button is on the delivery’s page."
DATA_IS_DELETED = "its personal data was deleted before it was delivered"
CURRENT = Badge("done", "check", "Current")
WORKING = Badge("done", "check", "Works")
NOT_CALLED = Badge("still", "dashes", "Not called yet")


def host_of(url: str) -> str:
    """Return an endpoint's host, for a heading."""
    return urlsplit(url).hostname or url


def heading_of_event(row: Event) -> str:
    """Return "Event checkout.authorized of order A-20417"."""
    return (
        f"Event {row.type} of {order_words(row.checkout_uuid)}" if row.checkout_uuid else f"Event {row.type}"
    )


def heading_of_delivery(row: Delivery) -> str:
    """Return "Delivery of checkout.authorized to shop.example"."""
    return f"Delivery of {row.event_type} to {host_of(row.subscription.url)}"


def heading_of_attempt(row: Attempt) -> str:
    """Return "Attempt 2 to deliver checkout.authorized to shop.example"."""
    return f"Attempt {row.number} to deliver {row.event_type} to {host_of(row.delivery.subscription.url)}"


def head_of_event(row: Event, request: HttpRequest) -> Head:
    """Return the head of an event: what it announces, whether it was delivered, and whether a delivery is parked."""
    about = f" about {order_words(row.checkout_uuid)}" if row.checkout_uuid else ""
    summary = f"This event is a message to {row.merchant}{about}. It happened {format_when(row.created_at)}."
    order, deliveries = link_to_order(request, row.checkout_uuid), list(row.deliveries.order_by("-pk")[:2])
    if not deliveries:
        badge = ENDED[Status.SUPERSEDED] if row.superseded_at else None
        return Head(f"{summary} No endpoint was subscribed to it.", badge=badge, links=order)
    newest = deliveries[0]
    links = link_to(request, "Open the delivery", "webhooks.delivery", newest.pk)
    is_parked = newest.status == Status.PARKED and newest.closed_at is None
    step = "The delivery is parked. Its page says what to do." if is_parked else "No action is needed."
    return Head(
        f"{summary} {_why_ended(row, newest)}".strip(),
        step,
        of_delivery(newest),
        [*links, *order],
        names_button=is_parked,
    )


def head_of_delivery(row: Delivery, request: HttpRequest) -> Head:
    """Return the head of a delivery: what it sends where, the endpoint's last answer, and the next step."""
    summary = (
        f"This sends {row.event_type} of {order_words(row.event.checkout_uuid)} to {row.subscription.url}."
    )
    last = row.attempts.order_by("-number").first()
    if last is not None:
        summary = f"{summary} {answer_words(last)}"
    if row.superseded_at or row.status == Status.SUPERSEDED:
        summary = f"{summary} {_superseded_words(row.event)}"
    links = link_to(request, "Open the last attempt", "webhooks.attempt", last.pk if last else None)
    order = link_to_order(request, row.event.checkout_uuid)
    action = "" if resending.is_hold_over(row) else "resend"
    return Head(
        summary,
        _delivery_step(row),
        of_delivery(row),
        [*links, *order],
        names_button=_can_be_resent(row),
        action=action,
    )


def head_of_attempt(row: Attempt, request: HttpRequest) -> Head:
    """Return the head of an attempt: the endpoint's answer, and the next step for the delivery."""
    delivery = row.delivery
    about = order_words(delivery.event.checkout_uuid)
    summary = (
        f"This was a POST of {row.event_type} of {about} to {delivery.subscription.url}. {answer_words(row)}"
    )
    links = link_to(request, "Open the delivery", "webhooks.delivery", delivery.pk)
    is_latest = row.number == delivery.attempt_count
    step = _delivery_step(delivery) if is_latest else "No action is needed here: a later attempt followed."
    names_button = is_latest and _can_be_resent(delivery)
    step = f"{step} {RESENT_ON_ITS_PAGE}" if names_button else step
    return Head(summary, step, of_attempt(delivery, row), links, names_button=names_button)


def head_of_subscription(row: Subscription, request: HttpRequest) -> Head:
    """Return the head of a subscription: where events are sent, and whether the endpoint answers."""
    summary = f"{row.merchant} gets {_types(row)} at {row.url}."
    if row.ended_at:
        return Head(f"{summary} It ended {format_when(row.ended_at)}.", badge=CLOSED._replace(words="Ended"))
    endpoint = Endpoint.objects.filter(subscription=row).first()
    if endpoint is None or not endpoint.failing_since:
        return Head(summary, badge=CURRENT)
    return _failing_head(
        summary, endpoint, link_to(request, "Open the endpoint", "webhooks.endpoint", row.pk)
    )


def head_of_endpoint(row: Endpoint, request: HttpRequest) -> Head:
    """Return the head of an endpoint: whether it answers, and the last error."""
    summary = f"{row.subscription.merchant} gets webhooks at {row.subscription.url}."
    links = link_to(request, "Open the subscription", "webhooks.subscription", row.subscription_id)
    if row.failing_since:
        return _failing_head(summary, row, links)
    if row.last_success_at is None:
        return Head(summary, badge=NOT_CALLED, links=links)
    return Head(
        f"{summary} It last answered 2xx {format_when(row.last_success_at)}.", badge=WORKING, links=links
    )


def _failing_head(summary: str, endpoint: Endpoint, links: list[Link]) -> Head:
    since = f"It has failed since {format_utc(endpoint.failing_since)}. Last error: {endpoint.last_error or 'unknown'}."
    step = "Inform the merchant, who repairs the endpoint. The service keeps trying. Parked deliveries can be resent."
    return Head(f"{summary} {since}", step, FAILED._replace(words="Failing"), links)


def _types(row: Subscription) -> str:
    return "all events" if "*" in row.event_types else ", ".join(row.event_types)


def _why_ended(event: Event, delivery: Delivery) -> str:
    """If an event's newest delivery was delivered or superseded, return a sentence about this, else ""."""
    if delivery.status == Status.DELIVERED:
        return DELIVERED.format(at=f" {format_when(delivery.ended_at)}" if delivery.ended_at else "")
    return _superseded_words(event) if event.superseded_at or delivery.status == Status.SUPERSEDED else ""


def _superseded_words(event: Event) -> str:
    at = f" {format_when(event.superseded_at)}" if event.superseded_at else ""
    why = DATA_IS_DELETED if event.type in PERSONAL else HOLD_IS_OVER.format(how=_end_of_hold(event))
    return SUPERSEDED.format(at=at, why=why)


def _end_of_hold(event: Event) -> str:
    """Return the words about how the hold in an event ended."""
    checkout = Checkout.objects.filter(pk=event.checkout_uuid).first() if event.checkout_uuid else None
    if checkout is not None and checkout.captured_at is not None:
        return HOLD_WAS_CAPTURED
    is_cancelled = checkout is not None and checkout.void_reason == VoidReason.MERCHANT_CANCEL
    return HOLD_WAS_CANCELLED if is_cancelled else HOLD_ENDED


def answer_words(row: Attempt) -> str:
    """Return a sentence about the endpoint's answer to an attempt."""
    if row.is_delivered is None:
        return "The endpoint has not answered yet."
    after = f" after {row.duration_ms:,} ms" if row.duration_ms is not None else ""
    if row.http_status:
        reason = given_reason(row)
        return f"The endpoint answered HTTP {row.http_status}{after}{f': “{reason}”' if reason else ''}."
    if row.error_message == "could not connect":
        return "The endpoint could not be reached."
    return f"The endpoint gave no answer{after}: {row.error_message or 'unknown error'}."


def _can_be_resent(row: Delivery) -> bool:
    """Return whether the next step for a delivery is to send it again."""
    is_parked = row.status == Status.PARKED and row.closed_at is None
    return is_parked and not resending.is_hold_over(row)


def _delivery_step(row: Delivery) -> str:
    if row.closed_at:
        return f"No action is needed: a person closed it {format_when(row.closed_at)}."
    if row.status == Status.PARKED:
        return _parked_step(row)
    if row.status != Status.PENDING:
        return "No action is needed."
    if row.lease_token:
        return "No action is needed: it is being sent now."
    if row.next_attempt_at is None:
        return "Wait. An owner or admin of the merchant has to approve the address for personal data, in the portal."
    return f"No action is needed: the service sends it {format_when(row.next_attempt_at)}."


def _parked_step(row: Delivery) -> str:
    """Return the next step for a parked delivery, which the service no longer sends."""
    if resending.is_hold_over(row):
        return (
            "Its hold is over, so it can no longer be captured. Inform the merchant why the endpoint failed."
        )
    return "Inform the merchant, who repairs the endpoint. Then choose Send again."
