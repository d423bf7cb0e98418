"""Opaque cursors for keyset pagination. They serve lists with the newest rows first, and lists of changes.

Rules list.pages, list.cursor.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from django.core import signing
from django.db.models import F, Q, QuerySet
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThanOrEqual, TupleLessThan

from config.lib import clock
from config.lib.database import feed_horizon

Row = TypeVar("Row")
Position: TypeAlias = tuple[datetime, UUID]  # a row's place in a list: its time, then its id


class InvalidCursor(Exception):
    """Raised if a cursor is not valid for this merchant and list."""


def read_page(
    rows: QuerySet[Any, Row],
    *,
    scope: str,
    limit: int,
    cursor: str | None,
    key: str = "created_at",
    in_steps: bool = False,
) -> tuple[Sequence[Row], str | None]:
    """Return one page, and the cursor of the next page or None if there is none. Raises InvalidCursor.

    Each row has an `id` and the field `key`. `scope` names the list and the merchant. A cursor is valid only
    for the scope for which it is signed.

    Use `in_steps` for a partitioned table if the filter has no index because most rows match it. The newest
    days are then read first, and are often sufficient. Without `in_steps`, PostgreSQL would also read whole
    partitions of older days.
    """
    at = None
    if cursor is not None:
        at, last = read_cursor(cursor, scope, *_PLACE)
        rows = rows.filter(TupleLessThan(Tuple(F(key), F("pk")), (at, last)))
    rows = rows.order_by(f"-{key}", "-pk")
    page = _first_rows(rows, limit + 1, key, at or clock.now()) if in_steps else list(rows[: limit + 1])
    if len(page) <= limit:
        return page, None
    end: Any = page[limit - 1]
    return page[:limit], write_cursor(scope, getattr(end, key), end.id)


_STEPS = (timedelta(days=1), timedelta(days=7))


def _first_rows(rows: QuerySet[Any, Row], count: int, key: str, at: datetime) -> list[Row]:
    """Return the first `count` of the ordered rows.

    Search the last day before `at` first, then the last week, then the rest.
    """
    first_rows: list[Row] = []
    for step in _STEPS:
        since = at - step
        # The lower bound compares two columns, like the upper bound from the cursor. If both bounds were on one
        # column, PostgreSQL would wrongly estimate that almost no rows match, and would not reuse its plan. Each
        # query would then be planned again for all partitions, which takes 2 ms.
        later = TupleGreaterThanOrEqual(Tuple(F(key), F("pk")), (since, _FIRST))
        first_rows += rows.filter(later)[: count - len(first_rows)]
        if len(first_rows) == count:
            return first_rows
        rows = rows.filter(**{f"{key}__lt": since})
    return first_rows + list(rows[: count - len(first_rows)])


class Feed(NamedTuple, Generic[Row]):
    """Rows that are listed by the time of their last change. For most rows, this time is in the field `key`.

    `changed_at` returns the time of a row's last change, which can be later than its key. `beside` returns
    the rows that have changed since a given time although their key is older.
    """

    rows: QuerySet[Any, Row]
    key: str
    changed_at: Callable[[Row], datetime]
    beside: Callable[[datetime], Iterable[Row]]

    def changes_after(
        self, place: Position, until: datetime, limit: int
    ) -> tuple[list[Row], Position | None]:
        """Return the rows that changed after a place, in order, and the place up to which the list is complete.

        That place is None if there are no more rows before `until`. The list can be shorter than `limit` even
        if there are more rows.
        """
        since = Q(**{f"{self.key}__gt": place[0]}) | Q(pk__gt=place[1])
        rows = self.rows.filter(since, **{f"{self.key}__gte": place[0], f"{self.key}__lt": until})
        changed: list[Any] = list(rows.order_by(self.key, "pk")[:limit])
        end: Position | None = (
            (getattr(changed[-1], self.key), changed[-1].id) if len(changed) == limit else None
        )
        by_id: dict[UUID, Any] = {row.id: row for row in [*changed, *self.beside(place[0])]}
        places = sorted((self.changed_at(row), row.id) for row in by_id.values())
        page = [at for at in places if place < at <= (end or (until, _FIRST))][:limit]
        return [by_id[key] for _, key in page], page[-1] if len(page) == limit else end


def read_changes(
    rows: Feed[Row], *, scope: str, limit: int, cursor: str | None, start: datetime | None
) -> tuple[Sequence[Row], str]:
    """Return the rows that changed after the cursor, in the order of their changes, and the next cursor.

    Without a cursor, the rows begin after `start`, or at the first row if `start` is None. Every page has a
    next cursor, even the last one. After an empty page, the next cursor continues from the same place. A
    later page lists the rows that an open transaction might still write (see `feed_horizon`). Raises
    InvalidCursor. Rule list.changes.
    """
    place: Position = (start, _LAST) if start else (datetime.min.replace(tzinfo=UTC), _FIRST)
    if cursor is not None:
        at, last = read_cursor(cursor, scope, *_PLACE)
        place = at, last
    until = feed_horizon.horizon()
    page: list[Row] = []
    end: Position | None = place
    while end and len(page) < limit:  # readers rely on full pages as long as there are more rows
        more, end = rows.changes_after(end, until, limit - len(page))
        page += more
    if not page and cursor:
        return page, cursor
    if page:
        newest: Any = page[-1]
        place = end or (rows.changed_at(newest), newest.id)
    return page, write_cursor(scope, *place)


def write_cursor(scope: str, *place: datetime | UUID) -> str:
    """Return a cursor for a place in a list. The cursor is signed for the list's scope."""
    fields = [part.isoformat() if isinstance(part, datetime) else part.hex for part in place]
    return signing.dumps(fields, salt=scope)


def read_cursor(cursor: str, scope: str, *kinds: Callable[[str], Any]) -> list[Any]:
    """Return the position that a cursor encodes. `kinds` parse its parts in order. Raises InvalidCursor."""
    try:
        fields: Any = signing.loads(cursor, salt=scope)
        return [kind(field) for kind, field in zip(kinds, fields, strict=True)]
    except (signing.BadSignature, ValueError, TypeError, AttributeError, UnicodeError):
        raise InvalidCursor from None


_PLACE = (datetime.fromisoformat, UUID)  # the parsers for the two parts of a row's place
_FIRST = UUID(int=0)  # comes before all ids of the same time
_LAST = UUID(int=(1 << 128) - 1)  # comes after all ids of the same time
