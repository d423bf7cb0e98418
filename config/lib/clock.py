"""The clock of PostgreSQL, which is the only clock that the service uses."""

import time
from datetime import UTC, datetime
from functools import cache
from uuid import UUID, uuid4
from zoneinfo import available_timezones

from config.lib.database import queries, statements

# Python lists these two names, but they are not names of zones. `localtime` is the machine's own zone, and
# `Factory` means that no zone is set.
EXCLUDED_ZONES = frozenset({"localtime", "Factory"})


def now() -> datetime:
    """Return the database's wall clock time, aware, in UTC.

    Call this function after you lock the row. The locking statement itself cannot return the right time. In
    SQL, `now()` is the start of the transaction, and `clock_timestamp()` is read before the wait for the
    lock.
    """
    read: datetime = queries.value(statements.READ_CLOCK)
    return read


def seconds_ahead() -> float:
    """Return by how many seconds this process's clock is ahead of the database's. Negative means behind.

    The error is at most half of the database's response time.
    """
    asked_at = time.time()
    there = now().timestamp()
    return (asked_at + time.time()) / 2 - there


def first_id(at: datetime) -> UUID:
    """Return the lowest UUIDv7 of a time. No id that is made at this time or later is lower."""
    return UUID(int=int(at.timestamp() * 1000) << 80)


def first_id_of_same_time(row_id: UUID) -> UUID:
    """Return a lower bound for all UUIDv7 ids with the same timestamp as this id."""
    return UUID(int=row_id.int >> 80 << 80)


def last_id_of_same_time(row_id: UUID) -> UUID:
    """Return an upper bound for all UUIDv7 ids with the same timestamp as this id."""
    return UUID(int=row_id.int | (1 << 80) - 1)


def time_of_id(row_id: UUID) -> datetime:
    """Return the time at which a UUIDv7 was made, according to the clock of the machine that made it."""
    return datetime.fromtimestamp((row_id.int >> 80) / 1000, UTC)


def new_id_of_same_time(of: UUID) -> UUID:
    """Return a new UUIDv7 with the time of another id, so that both are in partitions for the same days."""
    return UUID(int=(of.int >> 80) << 80 | uuid4().int & ~(0xF << 76) & ((1 << 80) - 1) | 7 << 76)


def iso(at: datetime | None) -> str | None:
    """Format a timestamp in ISO 8601, in UTC, with exactly three decimals and `Z` (rule api.timestamps)."""
    if at is None:
        return None
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


@cache
def zone_names() -> frozenset[str]:
    """Return the IANA time zone names. They are cached, because listing them opens hundreds of files.

    If the machine has no time zone files, the names come from the package `tzdata`.
    """
    return frozenset(available_timezones()) - EXCLUDED_ZONES
