"""The outbox: an event is written in the transaction of the change that it tells."""

from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from django.db import connection, transaction
from django.db.models import F
from uuid_utils.compat import uuid7

from config.lib import clock, failpoint, request_id, wakeup
from payments.models import Merchant
from webhooks.models import URGENT, Delivery, Event, EventType, Subscription, sealed

API_VERSION = "2026-06"
DELIVER_DUE = "webhooks.tasks.deliver_due"


def emit(
    merchant: Merchant,
    event_type: EventType,
    payload: dict[str, Any],
    *,
    at: datetime,
    checkout_uuid: UUID | None = None,
    valid_until: datetime | None = None,
) -> Event:
    """Write an event with the bytes that will be sent, and its delivery if the merchant wants the type.

    `at` is when it happened; no attempt starts at or after `valid_until`. Wakes the senders on commit.
    SPEC.md 2.7.
    """
    event_id = uuid7()
    envelope = {
        "id": str(event_id),
        "type": event_type.value,
        "api_version": API_VERSION,
        "created_at": clock.iso(at),
        "data": payload,
    }
    event = Event.objects.create(
        id=event_id,
        merchant=merchant,
        type=event_type,
        checkout_uuid=checkout_uuid,
        body=sealed(event_type, orjson.dumps(envelope)),
        created_at=at,
        valid_until=valid_until,
        request_id=request_id.current(),
    )
    failpoint.reach("event_written", event_type, checkout_uuid)
    transaction.on_commit(partial(failpoint.reach, "event_committed", event_type, checkout_uuid))
    _deliver(event)
    return event


def _deliver(event: Event) -> None:
    """`webhook.test` bypasses the filter; an event nobody subscribed to stays a row without a delivery."""
    subscription = Subscription.objects.filter(merchant_id=event.merchant_id, ended_at=None).first()
    if subscription is None:
        return
    wanted = {"*", event.type} & set(subscription.event_types)
    if wanted or event.type == EventType.TEST:
        Delivery.objects.create(
            merchant_id=event.merchant_id,
            event=event,
            subscription=subscription,
            is_urgent=event.type in URGENT,
            next_attempt_at=event.created_at,
        )
        wakeup.after_commit(DELIVER_DUE)


def supersede(checkout_uuid: UUID, now: datetime) -> None:
    """End the checkout's `checkout.authorized` deliveries: it is no longer held.

    An attempt in flight finishes, and its result stands.
    """
    with connection.cursor() as cursor:
        cursor.execute(_SUPERSEDE, [now, checkout_uuid, EventType.AUTHORIZED.value, now])


_SUPERSEDE = """
WITH gone AS (
    UPDATE webhooks_event SET superseded_at = %s
    WHERE checkout_uuid = %s AND type = %s AND superseded_at IS NULL
    RETURNING id
)
UPDATE webhooks_delivery d SET status = 'superseded', next_attempt_at = NULL, ended_at = %s,
    resent_by = '', returns_at = NULL
FROM gone WHERE d.event_id = gone.id AND d.status = 'pending' AND d.lease_token IS NULL
"""


def hasten(checkout_uuid: UUID, moved_by: Any) -> None:
    """Bring what is still due of a checkout's deliveries nearer, and the end of their window (sandbox helper)."""
    windows = Event.objects.filter(checkout_uuid=checkout_uuid, valid_until__isnull=False)
    windows.update(valid_until=F("valid_until") - moved_by)
    due = Delivery.objects.filter(event__checkout_uuid=checkout_uuid, status=Delivery.Status.PENDING)
    due.filter(lease_token=None).update(next_attempt_at=F("next_attempt_at") - moved_by)
    wakeup.after_commit(DELIVER_DUE)
