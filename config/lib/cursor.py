"""Opaque cursors for keyset pages: newest first, or all changes in their order (rules list.pages, list.cursor)."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from django.core import signing
from django.db.models import F, Q, QuerySet
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThanOrEqual, TupleLessThan

from config.lib import clock
from config.lib.database import feed

Row = TypeVar("Row")
Place: TypeAlias = tuple[datetime, UUID]  # of a row in a list: its time, and its id among those of one time


class InvalidCursor(Exception):
    """The cursor is not one of ours for this merchant and list."""


def page(
    rows: QuerySet[Any, Row],
    *,
    scope: str,
    limit: int,
    cursor: str | None,
    key: str = "created_at",
    in_steps: bool = False,
) -> tuple[Sequence[Row], str | None]:
    """Return one page and the cursor of the next one, None on the last. Each row has `id` and the key.

    `in_steps` is for what most rows of a table in partitions are, so that no index is of it alone: where a day has none
    of them, all of that day would be read for a page of newer ones. `scope` names list and merchant: a cursor is signed
    for one of each. Raises InvalidCursor.
    """
    at = None
    if cursor is not None:
        at, last = read(cursor, scope, *_PLACE)
        rows = rows.filter(TupleLessThan(Tuple(F(key), F("pk")), (at, last)))
    rows = rows.order_by(f"-{key}", "-pk")
    found = _newest(rows, limit + 1, key, at or clock.now()) if in_steps else list(rows[: limit + 1])
    if len(found) <= limit:
        return found, None
    end: Any = found[limit - 1]
    return found[:limit], written(scope, getattr(end, key), end.id)


_STEPS = (timedelta(days=1), timedelta(days=7))


def _newest(rows: QuerySet[Any, Row], count: int, key: str, at: datetime) -> list[Row]:
    """Return the first of the ordered rows, looked for in the day before a moment, then the week, then in the rest."""
    found: list[Row] = []
    for step in _STEPS:
        since = at - step
        # A row of columns, as the page's end is: two bounds of one column are taken for next to nothing where a plan is
        # to be kept, so that none was, and to plan for all partitions anew took 2 ms.
        later = TupleGreaterThanOrEqual(Tuple(F(key), F("pk")), (since, _FIRST))
        found += rows.filter(later)[: count - len(found)]
        if len(found) == count:
            return found
        rows = rows.filter(**{f"{key}__lt": since})
    return found + list(rows[: count - len(found)])


class Feed(NamedTuple, Generic[Row]):
    """Rows that are listed by their last change, which most of them have in the field `key`.

    `changed_at` says it of each row, and may be later than the key. `beside` returns rows that have changed since a
    moment as their key does not tell.
    """

    rows: QuerySet[Any, Row]
    key: str
    changed_at: Callable[[Row], datetime]
    beside: Callable[[datetime], Iterable[Row]]

    def after(self, place: Place, until: datetime, limit: int) -> tuple[list[Row], Place | None]:
        """Return rows that have changed after a place, in that order, and how far they are all that have.

        That is None where there are no others before `until`. They may be fewer than `limit` though there are others.
        """
        since = Q(**{f"{self.key}__gt": place[0]}) | Q(pk__gt=place[1])
        rows = self.rows.filter(since, **{f"{self.key}__gte": place[0], f"{self.key}__lt": until})
        told: list[Any] = list(rows.order_by(self.key, "pk")[:limit])
        end: Place | None = (getattr(told[-1], self.key), told[-1].id) if len(told) == limit else None
        found: dict[UUID, Any] = {row.id: row for row in [*told, *self.beside(place[0])]}
        places = sorted((self.changed_at(row), row.id) for row in found.values())
        page = [at for at in places if place < at <= (end or (until, _FIRST))][:limit]
        return [found[key] for _, key in page], page[-1] if len(page) == limit else end


def changes(
    rows: Feed[Row], *, scope: str, limit: int, cursor: str | None, start: datetime | None
) -> tuple[Sequence[Row], str]:
    """Return the rows since the cursor in the order of their change, and the cursor from which to go on, always.

    Without a cursor they begin after `start`, if there is one; the cursor keeps it, also that of an empty page. Rows
    that a transaction may still write come later, whatever their key says: `feed.horizon`. Raises InvalidCursor.
    Rule list.changes.
    """
    place: Place = (start, _LAST) if start else (datetime.min.replace(tzinfo=UTC), _FIRST)
    if cursor is not None:
        at, last = read(cursor, scope, *_PLACE)
        place = at, last
    until = feed.horizon()
    found: list[Row] = []
    end: Place | None = place
    while end and len(found) < limit:  # a page is full where there are more: readers go by it
        more, end = rows.after(end, until, limit - len(found))
        found += more
    if not found and cursor:
        return found, cursor
    if found:
        newest: Any = found[-1]
        place = end or (rows.changed_at(newest), newest.id)
    return found, written(scope, *place)


def written(scope: str, *place: datetime | UUID) -> str:
    """Return the cursor of a place in a list."""
    fields = [part.isoformat() if isinstance(part, datetime) else part.hex for part in place]
    return signing.dumps(fields, salt=scope)


def read(cursor: str, scope: str, *kinds: Callable[[str], Any]) -> list[Any]:
    """Return the place that a cursor was written for, its parts read as these kinds. Raises InvalidCursor."""
    try:
        fields: Any = signing.loads(cursor, salt=scope)
        return [kind(field) for kind, field in zip(kinds, fields, strict=True)]
    except (signing.BadSignature, ValueError, TypeError, AttributeError, UnicodeError):
        raise InvalidCursor from None


_PLACE = (datetime.fromisoformat, UUID)  # the kinds of a page's end
_FIRST = UUID(int=0)  # no row of a time comes before it
_LAST = UUID(int=(1 << 128) - 1)  # nor after this one
