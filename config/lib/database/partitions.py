"""Tables that are only added to, and dropped a whole partition at a time once their rows' time is over.

Their rows lie by the time that their UUIDv7 ids begin with. Partitions are made and dropped by two functions of the
tables' owner, `make_partition` and `drop_partition`, which refuse what is too far ahead or too young. What comes while
a partition is missing lies in the default one, and stays there until its time is over (rule secret.retention).
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from uuid import UUID

import structlog
from django.db import DatabaseError, connection, transaction

from config.lib import batches, clock

log = structlog.get_logger("config.lib.database.partitions")
AHEAD = timedelta(days=8)  # partitions that there are before their time comes
YOUNGEST = timedelta(days=7)  # `drop_partition` drops nothing younger
EPOCH = date(1970, 1, 1)
CLOCKS_DIFFER = timedelta(hours=1)  # at most, of the machines that make ids
ROWS = 500
# The day on which the first one starts that is not the default one, as `Partitioned.named` writes it.
_OLDEST = """
SELECT min(to_date(right(relname::text, 8), 'YYYYMMDD')) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = %s::regclass AND relname ~ '_[0-9]{8}$'
"""


@dataclass(frozen=True)
class Partitioned:
    """A table with a default partition, and for how many days each other one is."""

    table: str
    days: int = 1

    def named(self, starts_on: date) -> str:
        """Return the partition's name."""
        return f"{self.table}_{starts_on:%Y%m%d}"

    def steps(self, since: date, until: date) -> list[date]:
        """Return the days on which the partitions from `since` to `until` start."""
        first = since - timedelta(days=(since - EPOCH).days % self.days)
        return [first + timedelta(days=day) for day in range(0, (until - first).days + 1, self.days)]


def beside(*ids: UUID) -> tuple[UUID, UUID]:
    """Return the first and the last id of the moments of these ids: what lies with them lies between the two.

    For `pk__range`: PostgreSQL then plans for their partitions alone.
    """
    moments = [found.int >> 80 for found in ids]
    return UUID(int=min(moments) << 80), UUID(int=(max(moments) << 80) + (1 << 80) - 1)


def told_of(*ids: UUID) -> tuple[UUID, UUID]:
    """Return the first and the last id that rows can have which were made after these objects, until now."""
    now = time.time_ns() // 1_000_000
    slack = int(CLOCKS_DIFFER.total_seconds() * 1000)
    first = min((found.int >> 80 if found.version == 7 else 0 for found in ids), default=now)
    return UUID(int=max(0, min(first, now) - slack) << 80), UUID(int=now + slack << 80)


def make_ahead(*tables: Partitioned) -> int:
    """Make what is missing for today and the days after it; return how many partitions."""
    today = clock.now().date()
    return sum(make(table, today, today + AHEAD) for table in tables)


def make(table: Partitioned, since: date, until: date) -> int:
    """Make the partitions of these days that are missing; return how many. One that fails holds up no other.

    None is made of days of which the default partition holds rows: they would have to be moved under a lock.
    """
    wanted = table.steps(since, until)
    found = _existing(map(table.named, wanted))
    return sum(_is_made(table, day) for day in wanted if table.named(day) not in found)


def _is_made(table: Partitioned, starts_on: date) -> bool:
    ends_on = starts_on + timedelta(days=table.days)
    return bool(_tried(table, partial(_ask, "SELECT make_partition(%s, %s, %s)", table, starts_on, ends_on)))


def drop(table: Partitioned, before: datetime, *, referring: Sequence[Partitioned] = ()) -> int:
    """Drop the partitions of which all ids are from before a moment; return how many.

    What the default partition has caught is deleted row by row. Whoever waits for a lock gives up soon, since all
    others wait behind it: the next run tries again. Until then the same days stay of whatever the rows refer to, for
    which these tables are `referring`.
    """
    dropped = 0
    while _tried(table, partial(_is_dropped, table, before, referring)):
        dropped += 1
    return dropped


def _is_dropped(table: Partitioned, before: datetime, referring: Sequence[Partitioned]) -> bool:
    """Drop the oldest partition that may go; that is undone where rows of its days may still refer to it."""
    dropped = _ask("SELECT drop_partition(%s, %s)", table, before)
    if dropped is None:
        return False
    days = str(dropped).removeprefix(table.table)
    is_early = bool(_existing(one.table + days for one in referring))
    transaction.set_rollback(is_early)
    return not is_early


def delete_caught(table: Partitioned, before: datetime) -> datetime:
    """Delete what the default partition has caught before a moment, the oldest first, in batches that have an end.

    Returns the moment before which nothing of it is left.
    """
    rest = connection.ops.quote_name(f"{table.table}_default")
    oldest = f"SELECT id FROM {rest} WHERE id < %s ORDER BY id LIMIT %s"  # noqa: S608 - ours

    def step(rows: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {rest} WHERE id IN ({oldest})", [clock.first_id(before), rows])  # noqa: S608
            return int(cursor.rowcount)

    batches.repeat(step, rows=ROWS)
    with connection.cursor() as cursor:
        cursor.execute(oldest, [clock.first_id(before), 1])
        left = cursor.fetchone()
    return clock.made_at(left[0]) if left else before


def starts_at(table: Partitioned) -> datetime | None:
    """Return when the oldest partition starts: what was before has gone. None if there is the default one alone."""
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST, [table.table])
        (day,) = cursor.fetchone()
    return datetime.combine(day, datetime.min.time(), UTC) if day else None


def days_ahead(table: Partitioned, today: date) -> int:
    """Return how many days from today on have their partition, without a gap."""
    wanted = table.steps(today, today + AHEAD)
    found = _existing(map(table.named, wanted))
    missing = next((day for day in wanted if table.named(day) not in found), wanted[-1])
    return max(0, (missing - today).days)


def _existing(names: Iterable[str]) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM unnest(%s::text[]) name WHERE to_regclass(name) IS NOT NULL", [list(names)]
        )
        return {name for (name,) in cursor.fetchall()}


def _ask(statement: str, table: Partitioned, *arguments: date) -> object:
    """Return what one of the owner's functions answers."""
    with connection.cursor() as cursor:
        cursor.execute(statement, [table.table, *arguments])
        return cursor.fetchone()[0]


def _tried(table: Partitioned, act: Callable[[], object]) -> object:
    """Return what is answered, None if it fails, in a transaction of its own."""
    is_inside = connection.in_atomic_block
    try:
        with transaction.atomic():
            return act()
    except DatabaseError as error:
        if is_inside:
            raise
        log.error("partition", table=table.table, error=type(error).__name__, exc_info=True)
        return None
