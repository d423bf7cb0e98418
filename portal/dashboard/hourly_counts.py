"""The home page's figures by hour, counted by a pump so that no page has to count them.

An hour has the rows that were written in it, by the time in their ids. It is final soon after its end, and
counting it again gives the same result.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Max

from config.lib import clock
from portal.dashboard.histogram import ANSWER_MS, HOLD_SECONDS
from portal.models import DeliveryHour, PaymentHour

HOUR = timedelta(hours=1)
SETTLES = timedelta(minutes=5)  # how long after an hour's end its last row can be committed
FARTHEST = timedelta(days=62)  # two of the longest ranges that are drawn

# Each column has the name of its field. A column of a histogram holds slots, which Python counts.
PAYMENTS = f"""
SELECT c.merchant_id, c.currency,
    count(*) FILTER (WHERE ch."to" = 'captured') AS captured_count,
    coalesce(sum(c.amount) FILTER (WHERE ch."to" = 'captured'), 0) AS captured_amount,
    count(*) FILTER (WHERE ch."to" = 'voided' AND c.void_reason = 'merchant_cancel') AS cancelled_count,
    count(*) FILTER (WHERE ch."to" = 'voided' AND c.void_reason = 'auth_expired') AS lapsed_count,
    coalesce(sum(c.amount) FILTER (WHERE ch."to" = 'voided' AND c.void_reason = 'auth_expired'), 0) AS lapsed_amount,
    count(*) FILTER (WHERE ch."to" = 'refunded') AS refunded_count,
    coalesce(sum(c.amount) FILTER (WHERE ch."to" = 'refunded'), 0) AS refunded_amount,
    array_agg({HOLD_SECONDS.sql.format(value="extract(epoch FROM c.captured_at - c.authorized_at)")})
        FILTER (WHERE ch."to" = 'captured') AS hold_times
FROM checkout_change ch JOIN checkout_checkout c ON c.id = ch.checkout_id
WHERE ch.id >= %(first)s AND ch.id < %(last)s
  AND (ch.origin = 'authorized' AND ch."to" IN ('captured', 'voided') OR ch."to" = 'refunded')
GROUP BY c.merchant_id, c.currency
"""  # noqa: S608 - made only of our own constants

DELIVERIES = f"""
SELECT merchant_id, count(*) FILTER (WHERE is_delivered) AS delivered_count,
    count(*) FILTER (WHERE NOT is_delivered) AS failed_count,
    array_agg({ANSWER_MS.sql.format(value="duration_ms")}) FILTER (WHERE duration_ms IS NOT NULL) AS durations
FROM webhooks_attempt
WHERE started_at >= %(begins_at)s AND started_at < %(ends_at)s AND is_delivered IS NOT NULL
GROUP BY merchant_id
"""  # noqa: S608 - made only of our own constants


def catch_up(now: datetime) -> int:
    """Count the hours that can have changed since the last time; return how many."""
    hours = list(_open_hours(now))
    for hour in hours:
        count(hour)
    return len(hours)


def _open_hours(now: datetime) -> Iterator[datetime]:
    """Yield the hours to count, from the last one counted or that of five minutes ago to the current one."""
    counted = [
        model.objects.filter(hour__lte=now).aggregate(latest=Max("hour"))[
            "latest"
        ]  # the clock might have run ahead
        for model in (PaymentHour, DeliveryHour)
    ]
    begin = max(filter(None, counted), default=now - FARTHEST)
    first = max(min(begin, now - SETTLES), now - FARTHEST)
    hour = first.replace(minute=0, second=0, microsecond=0)
    while hour <= now:
        yield hour
        hour += HOUR


def count(hour: datetime) -> None:
    """Count one hour again, for every merchant."""
    ends_at = hour + HOUR
    span = {
        "begins_at": hour,
        "ends_at": ends_at,
        "first": clock.first_id(hour),
        "last": clock.first_id(ends_at),
    }
    with transaction.atomic(durable=True):
        payments = [
            PaymentHour(**row | {"hour": hour, "hold_times": HOLD_SECONDS.counted(row["hold_times"] or ())})
            for row in _rows(PAYMENTS, span)
        ]
        _write(PaymentHour, payments, ["merchant", "hour", "currency"])
        deliveries = [
            DeliveryHour(**row | {"hour": hour, "durations": ANSWER_MS.counted(row["durations"] or ())})
            for row in _rows(DELIVERIES, span)
        ]
        _write(DeliveryHour, deliveries, ["merchant", "hour"])


def _rows(statement: str, span: dict[str, Any]) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, span)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _write(model: Any, rows: list[Any], key: list[str]) -> None:
    """Insert or update the rows, always in the same order, so that two pumps never deadlock."""
    facts = [field.name for field in model._meta.concrete_fields if field.name not in (*key, "id")]
    ordered = sorted(rows, key=lambda row: (row.merchant_id.int, getattr(row, "currency", "")))
    model.objects.bulk_create(
        ordered, batch_size=500, update_conflicts=True, unique_fields=key, update_fields=facts
    )
