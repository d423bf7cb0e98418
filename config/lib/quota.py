"""Quotas: at most so many rows within a time. Callers `lock` the counted keys first, so that no row is missed."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import QuerySet


class Limit(NamedTuple):
    """At most `maximum` rows within any time of that length."""

    maximum: int
    within: timedelta


def lock(*keys: str) -> None:
    """Serialize the transactions that count the same keys, by advisory locks in the keys' order."""
    with connection.cursor() as cursor:
        for key in sorted(set(keys)):
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"quota:{key}"])


def free_at(rows: QuerySet[Any], limit: Limit, now: datetime) -> datetime | None:
    """Return when one more row may follow those, by their `created_at`; None if it may now."""
    times = rows.filter(created_at__gt=now - limit.within).order_by("-created_at")
    newest: list[datetime] = list(times.values_list("created_at", flat=True)[: limit.maximum])
    if len(newest) < limit.maximum:
        return None
    return newest[-1] + limit.within if newest else now + limit.within
