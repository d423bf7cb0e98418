"""Writes events and their deliveries to the outbox, in the transaction of the change that the events report."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from config.lib import clock, failpoint, wakeup
from config.lib.database import partitions, queries
from config.lib.process import tracing
from config.lib.web import request_id
from payments.models import Merchant
from webhooks import statements, subscriptions
from webhooks.delivery import LEASE_SECONDS
from webhooks.models import PERSONAL, URGENT, Attempt, Delivery, Event, EventType, encrypt_if_personal
from webhooks.subscriptions import DELIVER_DUE

API_VERSION = "2026-06"
SANDBOX = "sandbox"  # the actor of an attempt that the sandbox makes
_are_first_attempts_leased: ContextVar[bool] = ContextVar("are_taken", default=False)


class OutboxMessage(NamedTuple):
    """An event to write. `at` is when the event happened. Attempts can start only before `valid_until`."""

    merchant_uuid: UUID
    payload: dict[str, Any]
    at: datetime
    checkout_uuid: UUID | None = None
    valid_until: datetime | None = None


def emit(
    merchant: Merchant,
    event_type: EventType,
    payload: dict[str, Any],
    *,
    at: datetime,
    checkout_uuid: UUID | None = None,
    valid_until: datetime | None = None,
) -> Event:
    """Write one event, as `emit_all` does."""
    return emit_all(event_type, [OutboxMessage(merchant.pk, payload, at, checkout_uuid, valid_until)])[0]


def emit_all(event_type: EventType, messages: Sequence[OutboxMessage]) -> Sequence[Event]:
    """Write events. For each merchant who subscribes to this type, also write a delivery.

    The events contain the exact bytes that will be sent. The senders are woken after the commit. Rules
    event.envelope, event.outbox.
    """
    events = [_build_event(event_type, message) for message in messages]
    Event.objects.bulk_create(events)
    for event in events:
        failpoint.reach("event_written", event_type, event.checkout_uuid)
        transaction.on_commit(partial(failpoint.reach, "event_committed", event_type, event.checkout_uuid))
    _create_deliveries(event_type, events)
    return events


def _build_event(event_type: EventType, message: OutboxMessage) -> Event:
    event_id = uuid7()
    body = build_envelope(event_id, event_type, message.at, message.payload)
    return Event(
        id=event_id,
        merchant_id=message.merchant_uuid,
        type=event_type,
        checkout_uuid=message.checkout_uuid,
        body=encrypt_if_personal(event_type, body),
        created_at=message.at,
        valid_until=message.valid_until,
        request_id=request_id.current_id(),
        traceparent=tracing.current_traceparent(),
    )


def build_envelope(event_id: UUID, event_type: str, at: datetime, payload: dict[str, Any] | None) -> bytes:
    """Return the JSON of an event, as it is sent (rule event.envelope)."""
    return orjson.dumps(
        {
            "id": str(event_id),
            "type": str(event_type),
            "api_version": API_VERSION,
            "created_at": clock.iso(at),
            "data": payload,
        }
    )


class _Subscriber(NamedTuple):
    """The fields of a merchant's subscription that are needed to write deliveries."""

    merchant_id: UUID
    subscription_id: UUID
    event_types: Sequence[str]
    has_deliveries: bool
    is_approved: bool  # the address is approved for personal data

    def wants(self, event_type: EventType) -> bool:
        """Return whether events of this type are sent. `webhook.test` events always are. Rule subscription.filter."""
        return event_type == EventType.TEST or not {"*", event_type.value}.isdisjoint(self.event_types)


def _create_deliveries(event_type: EventType, events: Sequence[Event]) -> None:
    """Create a delivery for each event whose merchant is subscribed to this event type."""
    listeners = {
        listener.merchant_id: listener for listener in _read_subscribers(events) if listener.wants(event_type)
    }
    if listeners:
        deliveries = [
            _build_delivery(event, listeners[event.merchant_id])
            for event in events
            if event.merchant_id in listeners
        ]
        if _are_first_attempts_leased.get():
            _open_first_attempts(deliveries)
        Delivery.objects.bulk_create(deliveries)
        subscriptions.mark_having_deliveries(
            listener.subscription_id for listener in listeners.values() if not listener.has_deliveries
        )
        wakeup.wake_after_commit(DELIVER_DUE)


def _read_subscribers(events: Sequence[Event]) -> Sequence[_Subscriber]:
    is_personal = any(event.type in PERSONAL for event in events)
    statement = statements.LOCK_SUBSCRIPTIONS if is_personal else statements.READ_SUBSCRIPTIONS
    return [_Subscriber(*row) for row in queries.rows(statement, [[event.merchant_id for event in events]])]


@contextmanager
def lease_first_attempts() -> Iterator[None]:
    """Lease the first attempts of the events that this thread writes while the `with` block runs.

    Senders then cannot claim these attempts. The caller makes them with `webhooks.endpoint_tests`.
    """
    before = _are_first_attempts_leased.set(True)
    try:
        yield
    finally:
        _are_first_attempts_leased.reset(before)


def _open_first_attempts(deliveries: Sequence[Delivery]) -> None:
    """Lease new deliveries and open their first attempts, in the same way as a claim."""
    for delivery in deliveries:
        at = clock.now()
        delivery.lease_token, delivery.attempt_count = clock.new_id_of_same_time(delivery.event_id), 1
        delivery.lease_until = at + timedelta(seconds=LEASE_SECONDS)
        Attempt.objects.create(
            id=delivery.lease_token,
            merchant_id=delivery.merchant_id,
            delivery_id=delivery.pk,
            number=1,
            event_type=delivery.event_type,
            actor=SANDBOX,
            started_at=at,
        )


def _build_delivery(event: Event, listener: _Subscriber) -> Delivery:
    """Return a new delivery for the event, due at the time of the event.

    If the event has personal data and the address is not approved yet, the delivery has no due time.
    """
    is_held = event.type in PERSONAL and not listener.is_approved
    return Delivery(
        id=clock.new_id_of_same_time(event.pk),
        merchant_id=event.merchant_id,
        event=event,
        subscription_id=listener.subscription_id,
        event_type=event.type,
        is_urgent=event.type in URGENT,
        valid_until=event.valid_until,
        next_attempt_at=None if is_held else event.created_at,
    )


def supersede_all(ended: Mapping[UUID, datetime]) -> None:
    """End the `checkout.authorized` deliveries for checkouts whose hold has ended.

    `ended` contains the time at which the hold of each checkout ended. An attempt in flight continues, and its result
    counts (rule event.superseded).
    """
    first, last = partitions.ids_made_since(*ended)
    parameters: dict[str, Any] = {
        "checkouts": list(ended),
        "moments": list(ended.values()),
        "type": EventType.AUTHORIZED.value,
        "first": first,
        "last": last,
    }
    queries.execute(statements.SUPERSEDE_EVENTS, parameters)
    queries.execute(statements.SUPERSEDE_DELIVERIES, parameters)


def erase_bodies(events: Mapping[UUID, UUID]) -> None:
    """Delete the bodies of the `marketing.opted_in` events about an erased customer, and stop their deliveries.

    `events` maps each event's id to its checkout. An attempt in flight continues, and its result counts.
    """
    Event.objects.filter(pk__in=events).update(body=b"", body_deleted_at=Now(), superseded_at=Now())
    first, last = partitions.ids_made_since(*events.values())
    parameters: dict[str, Any] = {
        "checkouts": list(events.values()),
        "type": EventType.OPTED_IN.value,
        "first": first,
        "last": last,
    }
    queries.execute(statements.SUPERSEDE_DELIVERIES, parameters)


def last_event_times(checkouts: Sequence[UUID]) -> dict[UUID, datetime]:
    """Map each of these checkouts that has an event to the time of its latest event."""
    events = Event.objects.filter(
        checkout_uuid__in=checkouts, pk__range=partitions.ids_made_since(*checkouts)
    )
    return dict(events.values_list("checkout_uuid").annotate(Max("created_at")).order_by())


def advance(checkout_uuid: UUID, by: timedelta) -> None:
    """Move the times of a checkout's deliveries and attempts earlier by `by`, for the sandbox's helper API.

    The contents of the events about the checkout do not change.
    """
    events = Event.objects.filter(
        checkout_uuid=checkout_uuid, pk__range=partitions.ids_made_since(checkout_uuid)
    )
    _move_times(events, ("valid_until", "superseded_at"), by)
    deliveries = Delivery.objects.filter(event__in=list(events))
    # Deliveries must be locked before their attempts, because a process that ends a delivery locks them in this
    # order.
    list(deliveries.select_for_update(no_key=True).order_by("pk"))
    _move_times(Attempt.objects.filter(delivery__in=list(deliveries)), ("started_at", "ended_at"), by)
    _move_times(deliveries, ("returns_at", "valid_until", "superseded_at", "ended_at", "closed_at"), by)
    _move_times(deliveries.filter(lease_token=None), ("next_attempt_at",), by)
    wakeup.wake_after_commit(DELIVER_DUE)


def _move_times(rows: QuerySet[Any], names: Sequence[str], by: timedelta) -> None:
    rows.update(**{name: F(name) - by for name in names})
