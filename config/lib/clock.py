"""The one clock: PostgreSQL's."""

from datetime import UTC, datetime
from functools import cache
from uuid import UUID, uuid4
from zoneinfo import available_timezones

from django.db import connection

NO_ZONES = frozenset(
    {"localtime", "Factory"}
)  # files beside the zones: the machine's own, and one for "not set yet"


def now() -> datetime:
    """Return the database's wall clock, aware, in UTC.

    Call it once the row's lock is held. It is a statement of its own, since `now()` is the transaction's start
    and a clock read beside FOR UPDATE is from before the wait for the lock.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row: tuple[datetime] = cursor.fetchone()
    return row[0]


def first_id(at: datetime) -> UUID:
    """Return the lowest UUIDv7 of a moment: ids that were made since then are not below it."""
    return UUID(int=int(at.timestamp() * 1000) << 80)


def first_id_with(found: UUID) -> UUID:
    """Return an id that is no greater than any UUIDv7 of the same moment."""
    return UUID(int=found.int >> 80 << 80)


def last_id_with(found: UUID) -> UUID:
    """Return an id that is no less than any UUIDv7 of the same moment."""
    return UUID(int=found.int | (1 << 80) - 1)


def made_at(found: UUID) -> datetime:
    """Return the moment that a UUIDv7 was made, by the clock of whoever made it."""
    return datetime.fromtimestamp((found.int >> 80) / 1000, UTC)


def another_id(of: UUID) -> UUID:
    """Return a fresh UUIDv7 of the moment of another one, so that both lie in partitions of the same time."""
    return UUID(int=(of.int >> 80) << 80 | uuid4().int & ~(0xF << 76) & ((1 << 80) - 1) | 7 << 76)


def iso(at: datetime | None) -> str | None:
    """Return a timestamp as the API writes it: ISO 8601, UTC, exactly three decimals, `Z` (rule api.timestamps)."""
    if at is None:
        return None
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


@cache
def zones() -> frozenset[str]:
    """Return the IANA time zone names, read once: listing them opens hundreds of files.

    Where the machine has none, they are those of the package `tzdata`.
    """
    return frozenset(available_timezones()) - NO_ZONES
