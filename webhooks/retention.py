"""Deletes personal data after a week, and events with their log after 30 days (rule secret.retention).

Personal data is deleted in small batches. Events, deliveries and attempts are deleted a whole day at a time, with
their partitions. The partitions of a day are kept while a delivery from that day is pending. In practice, all such
deliveries have ended, because the retries of a delivery end within four days, and older deliveries cannot be sent
again (rule resend.age).
"""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from config.lib import batches, clock
from config.lib.database import partitions, queries
from webhooks import statements
from webhooks.models import EVENTS, PARTITIONED, Delivery, Endpoint, EventType, SigningSecret, Subscription

PERSONAL_KEPT_FOR = timedelta(days=7)
# A transaction that has read the subscription before its end can still write an event. After this time, all such
# transactions have ended.
ENDED_KEPT_FOR = timedelta(hours=1)
MAX_DROP_DELAY = timedelta(days=2)  # a partition is deleted at most this long after the end of its retention
ROWS = 500


def delete_personal_bodies() -> int:
    """Delete the bodies of events with personal data; return how many.

    A body is deleted 7 days after the event, or 7 days after its deliveries have ended if that is later.
    """
    return _run_in_batches(statements.DELETE_PERSONAL_BODIES, {"before": clock.now() - PERSONAL_KEPT_FOR})


def park_unapproved() -> int:
    """Park deliveries of personal data that have waited 7 days for an approved address; return how many."""
    before = clock.first_id(clock.now() - PERSONAL_KEPT_FOR)
    return _run_in_batches(statements.PARK_HELD, {"before": before, "type": EventType.OPTED_IN.value})


def release_approved() -> int:
    """Release personal deliveries that still wait although their address is approved; return how many.

    Such a delivery was written at the moment when its address was approved.
    """
    return _run_in_batches(statements.RELEASE_MISSED, {"type": EventType.OPTED_IN.value})


def create_partitions() -> int:
    """Create the partitions for the coming days; return how many."""
    return partitions.make_ahead(*PARTITIONED)


def drop_old_partitions() -> int:
    """Delete the partitions of events, deliveries and attempts that are older than WEBHOOK_RETENTION.

    Returns how many partitions were deleted. A delivery is never deleted before its attempts, and an event never
    before its deliveries, even if a partition of one table cannot be deleted yet.
    """
    before = clock.now() - settings.WEBHOOK_RETENTION
    dropped = sum(
        partitions.drop(table, before, referring=PARTITIONED[:place])
        for place, table in enumerate(PARTITIONED)
    )
    pending = Delivery.objects.filter(status=Delivery.Status.PENDING).order_by("pk")
    oldest = pending.values_list("pk", flat=True).first()
    before = min(before, clock.time_of_id(oldest)) if oldest else before
    for table in PARTITIONED:
        before = partitions.delete_default_rows(table, before)
    return dropped


def events_kept_since() -> datetime:
    """Return the time since when all events are retained.

    If WEBHOOK_RETENTION was increased recently, some of the older events are already deleted. The result is therefore
    never earlier than the start of the oldest partition.
    """
    since = clock.now() - settings.WEBHOOK_RETENTION
    return max(since, partitions.starts_at(EVENTS) or since)


def delete_ended_subscriptions() -> int:
    """Delete subscriptions that ended over an hour ago and never had a delivery; return how many.

    A subscription with deliveries is deleted later, after the last of its deliveries. When a subscription is deleted,
    its secrets are deleted too.
    """
    return batches.repeat(_delete_ended_batch, rows=ROWS)


def _delete_ended_batch(rows: int) -> int:
    before = clock.now() - ENDED_KEPT_FOR
    is_old = Q(ended_at__lt=before - settings.WEBHOOK_RETENTION - MAX_DROP_DELAY)
    pending = Delivery.objects.filter(subscription=OuterRef("pk"), status=Delivery.Status.PENDING)
    ended = Subscription.objects.filter(is_old | Q(ended_at__lt=before, has_deliveries=False))
    unused = ended.exclude(Exists(pending))
    keys = list(unused.values_list("pk", flat=True)[:rows])
    SigningSecret.objects.filter(subscription__in=keys).delete()
    Endpoint.objects.filter(subscription__in=keys).delete()
    Subscription.objects.filter(pk__in=keys).delete()
    return len(keys)


def _run_in_batches(statement: str, parameters: dict[str, Any]) -> int:
    return batches.repeat(lambda rows: queries.execute(statement, parameters | {"rows": rows}), rows=ROWS)
