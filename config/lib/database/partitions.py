"""Partitioned tables. The service only adds rows, and drops a whole partition after the retention of its rows.

The time at the beginning of a row's UUIDv7 id decides its partition. Two functions that belong to the owner
of the tables make and drop partitions. `make_partition` refuses days too far in the future, and
`drop_partition` refuses partitions that are too young. If there is no partition for a row, the row goes into
the default partition and stays there until its retention ends (rules secret.partitions, secret.retention).
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
from config.lib.database import queries, statements

log = structlog.get_logger("config.lib.database.partitions")
AHEAD = timedelta(days=8)  # how far in advance partitions are made
YOUNGEST = timedelta(days=7)  # how old rows must be before `drop_partition` drops them
EPOCH = date(1970, 1, 1)
# The largest difference between the clocks of machines that make ids.
MAX_CLOCK_DIFFERENCE = timedelta(hours=1)
ROWS = 500


@dataclass(frozen=True)
class Partitioned:
    """A table with a default partition, and the number of days that each of its other partitions covers."""

    table: str
    days: int = 1

    def named(self, starts_on: date) -> str:
        """Return the name of the partition that starts on a day."""
        return f"{self.table}_{starts_on:%Y%m%d}"

    def steps(self, since: date, until: date) -> list[date]:
        """Return the days on which the partitions from `since` to `until` start."""
        first = since - timedelta(days=(since - EPOCH).days % self.days)
        return [first + timedelta(days=day) for day in range(0, (until - first).days + 1, self.days)]


def id_range_of(*ids: UUID) -> tuple[UUID, UUID]:
    """Return the lowest and the highest possible id in the period that these ids cover.

    The range includes all rows whose ids `clock.new_id_of_same_time` made from these ids. Use it with
    `pk__range`, so that PostgreSQL plans only for the partitions of these ids.
    """
    moments = [row_id.int >> 80 for row_id in ids]
    return UUID(int=min(moments) << 80), UUID(int=(max(moments) << 80) + (1 << 80) - 1)


def ids_made_since(*ids: UUID) -> tuple[UUID, UUID]:
    """Return the range of all ids that were made since the earliest of these ids: its lower and its upper bound.

    The range is an hour wider at both ends, because the clocks of the machines that make ids differ.
    """
    now = time.time_ns() // 1_000_000
    slack = int(MAX_CLOCK_DIFFERENCE.total_seconds() * 1000)
    first = min((row_id.int >> 80 if row_id.version == 7 else 0 for row_id in ids), default=now)
    return UUID(int=max(0, min(first, now) - slack) << 80), UUID(int=now + slack << 80)


def make_ahead(*tables: Partitioned) -> int:
    """Make the missing partitions from today to today plus AHEAD; return how many were made."""
    today = clock.now().date()
    return sum(make(table, today, today + AHEAD) for table in tables)


def make(table: Partitioned, since: date, until: date) -> int:
    """Create the missing partitions for the days from `since` to `until`; return how many were created.

    If one fails, the others are still created. A day that already has rows in the default partition is
    skipped, because these rows would have to be moved under a lock.
    """
    starts = table.steps(since, until)
    existing = _existing_tables(map(table.named, starts))
    return sum(_try_make(table, day) for day in starts if table.named(day) not in existing)


def _try_make(table: Partitioned, starts_on: date) -> bool:
    ends_on = starts_on + timedelta(days=table.days)
    return bool(
        _try_in_transaction(
            table, partial(_call_owner_function, statements.MAKE_PARTITION, table, starts_on, ends_on)
        )
    )


def drop(table: Partitioned, cutoff: datetime, *, referring: Sequence[Partitioned] = ()) -> int:
    """Drop the partitions whose ids are all older than the cutoff; return how many were dropped.

    Rows in the default partition stay: see `delete_default_rows`. A drop waits only briefly for its lock,
    because all other statements on the table wait behind the drop. If it does not get the lock, the next run
    tries again.

    `referring` are the tables whose rows refer to rows of this table. A partition is kept while a referring
    table still has a partition for the same days.
    """
    dropped = 0
    while _try_in_transaction(table, partial(_drop_oldest, table, cutoff, referring)):
        dropped += 1
    return dropped


def _drop_oldest(table: Partitioned, cutoff: datetime, referring: Sequence[Partitioned]) -> bool:
    """Drop the oldest partition, and return whether one was dropped.

    If a referring table still has a partition for the same days, roll the drop back.
    """
    dropped = _call_owner_function(statements.DROP_PARTITION, table, cutoff)
    if dropped is None:
        return False
    days = str(dropped).removeprefix(table.table)
    is_early = bool(_existing_tables(one.table + days for one in referring))
    transaction.set_rollback(is_early)
    return not is_early


def delete_default_rows(table: Partitioned, cutoff: datetime) -> datetime:
    """Delete the default partition's rows that are older than the cutoff, oldest first, in limited batches.

    Return a time before which the default partition has no more rows.
    """
    rest = connection.ops.quote_name(f"{table.table}_default")

    def step(rows: int) -> int:
        return queries.execute(statements.DELETE_OLDEST.format(table=rest), [clock.first_id(cutoff), rows])

    batches.repeat(step, rows=ROWS)
    oldest = queries.row(statements.READ_OLDEST_IDS.format(table=rest), [clock.first_id(cutoff), 1])
    return clock.time_of_id(oldest[0]) if oldest else cutoff


def starts_at(table: Partitioned) -> datetime | None:
    """Return the start of the oldest partition. The partitions before it were dropped.

    Returns None if the table has only the default partition.
    """
    day = queries.value(statements.READ_OLDEST_PARTITION, [table.table])
    return datetime.combine(day, datetime.min.time(), UTC) if day else None


def days_ahead(table: Partitioned, today: date) -> int:
    """Return for how many days from today partitions exist without a gap."""
    starts = table.steps(today, today + AHEAD)
    existing = _existing_tables(map(table.named, starts))
    missing = next((day for day in starts if table.named(day) not in existing), starts[-1])
    return max(0, (missing - today).days)


def _existing_tables(names: Iterable[str]) -> set[str]:
    return {name for (name,) in queries.rows(statements.READ_EXISTING_TABLES, [list(names)])}


def _call_owner_function(statement: str, table: Partitioned, *arguments: date) -> object:
    """Call a database function that belongs to the owner of the tables, and return its result."""
    result: object = queries.value(statement, [table.table, *arguments])
    return result


def _try_in_transaction(table: Partitioned, action: Callable[[], object]) -> object:
    """Run `action` in its own transaction, and return its result.

    If a database error occurs, log it and return None. Inside an outer transaction, raise it instead.
    """
    is_inside = connection.in_atomic_block
    try:
        with transaction.atomic(durable=True):
            return action()
    except DatabaseError as error:
        if is_inside:
            raise
        log.error("partition", table=table.table, error=type(error).__name__, exc_info=True)
        return None
