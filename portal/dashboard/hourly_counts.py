"""The home page's figures by hour. A pump counts them, so that pages do not have to.

A row belongs to the hour in which its id was made. The figures are final soon after the end of the hour. If
an hour is counted again, the result is the same.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max

from config.lib import clock
from config.lib.database import queries
from portal import statements
from portal.dashboard.histogram import ANSWER_MS, HOLD_SECONDS
from portal.models import DeliveryHour, PaymentHour

HOUR = timedelta(hours=1)
COMMIT_DELAY = timedelta(minutes=5)  # how long after the end of an hour its last rows can be committed
MAX_LOOK_BACK = timedelta(days=62)  # earlier hours are not counted; twice the longest range, and two days


def catch_up(now: datetime) -> int:
    """Count the hours that might have changed since the last call. Return how many hours were counted."""
    hours = list(_open_hours(now))
    for hour in hours:
        count_hour(hour)
    return len(hours)


def _open_hours(now: datetime) -> Iterator[datetime]:
    """Yield the hours to count, up to the current hour.

    The first one is the hour that was counted last, because it was not over then. In the first five minutes
    of an hour, the previous hour is also counted again.
    """
    # Hours after `now` are ignored. They exist if the clock was ahead when they were counted.
    counted = [
        model.objects.filter(hour__lte=now).aggregate(latest=Max("hour"))["latest"]
        for model in (PaymentHour, DeliveryHour)
    ]
    begin = max(filter(None, counted), default=now - MAX_LOOK_BACK)
    first = max(min(begin, now - COMMIT_DELAY), now - MAX_LOOK_BACK)
    hour = first.replace(minute=0, second=0, microsecond=0)
    while hour <= now:
        yield hour
        hour += HOUR


def count_hour(hour: datetime) -> None:
    """Count one hour for all merchants. The new counts replace earlier counts of this hour."""
    ends_at = hour + HOUR
    parameters = {
        "begins_at": hour,
        "ends_at": ends_at,
        "first": clock.first_id(hour),
        "last": clock.first_id(ends_at),
    }
    with transaction.atomic(durable=True):
        # The last column of each row lists the slots of the events.
        payments = [
            PaymentHour(hour=hour, **row | {"hold_times": HOLD_SECONDS.count_slots(row["hold_times"] or ())})
            for row in queries.named_rows(statements.COUNT_PAYMENTS, parameters)
        ]
        _upsert_rows(PaymentHour, payments, ["merchant", "hour", "currency"])
        deliveries = [
            DeliveryHour(hour=hour, **row | {"durations": ANSWER_MS.count_slots(row["durations"] or ())})
            for row in queries.named_rows(statements.COUNT_DELIVERIES, parameters)
        ]
        _upsert_rows(DeliveryHour, deliveries, ["merchant", "hour"])


def _upsert_rows(model: Any, rows: list[Any], key: list[str]) -> None:
    """Insert or update the rows in a fixed order, so that two pumps cannot deadlock."""
    facts = [field.name for field in model._meta.concrete_fields if field.name not in (*key, "id")]
    ordered = sorted(rows, key=lambda row: (row.merchant_id.int, getattr(row, "currency", "")))
    model.objects.bulk_create(
        ordered, batch_size=500, update_conflicts=True, unique_fields=key, update_fields=facts
    )
