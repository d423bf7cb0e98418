"""Quotas: at most so many rows within a time. Callers `lock` the counted keys first, so that no row is missed."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import QuerySet

from config.lib.prepared import Prepared


class Limit(NamedTuple):
    """At most `maximum` rows within any time of that length."""

    maximum: int
    within: timedelta


def lock(*keys: str) -> None:
    """Serialize the transactions that count the same keys, by advisory locks in the keys' order."""
    names = [f"quota:{key}" for key in sorted(set(keys))]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(name, 0)) FROM unnest(%s::text[]) name", [names]
        )


def locked_until(rows: QuerySet[Any], limit: Limit, now: datetime) -> datetime | None:
    """Return until when no row may follow those: after the maximum within the time, none for that long again.

    None if one more may follow now.
    """
    latest = rows.filter(created_at__gt=now - 2 * limit.within).order_by("-created_at")
    times = list(latest.values_list("created_at", flat=True)[: limit.maximum])
    if len(times) < limit.maximum or times[0] - times[-1] >= limit.within:
        return None
    until = times[0] + limit.within
    return until if until > now else None


def free_at(
    counted: Callable[[str], QuerySet[Any]], key: str, limit: Limit, now: datetime
) -> datetime | None:
    """Return when one more row may follow those counted by a key, by their `created_at`; None if it may now."""
    if limit.maximum == 0:
        return now + limit.within
    deciding = _deciding(counted, limit).first(key, now - limit.within)
    return deciding.created_at + limit.within if deciding else None


@cache
def _deciding(counted: Callable[[str], QuerySet[Any]], limit: Limit) -> Prepared[Any]:
    """Return the query for the one row that decides: of a busy address there are hundreds."""

    def build(key: str, since: datetime) -> QuerySet[Any]:
        newest = counted(key).filter(created_at__gt=since).order_by("-created_at").only("created_at")
        return newest[limit.maximum - 1 : limit.maximum]

    return Prepared(build, str, datetime)
