"""Opaque cursors for keyset pages: newest first, or all changes in their order (rules list.pages, list.cursor)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, TypeVar
from uuid import UUID

from django.core import signing
from django.db.models import Q, QuerySet

from config.lib.database import feed

Row = TypeVar("Row")


class InvalidCursor(Exception):
    """The cursor is not one of ours for this merchant and list."""


def page(
    rows: QuerySet[Any, Row], *, scope: str, limit: int, cursor: str | None, key: str = "created_at"
) -> tuple[Sequence[Row], str | None]:
    """Return one page and the cursor of the next one, None on the last. Each row has `id` and the key.

    `scope` names list and merchant: a cursor is signed for one of each. Raises InvalidCursor.
    """
    if cursor is not None:
        at, last = read(cursor, scope, *_PLACE)
        # `lte` excludes no further row, but only with it does the index begin where the page does.
        rows = rows.filter(Q(**{f"{key}__lt": at}) | Q(pk__lt=last), **{f"{key}__lte": at})
    found = list(rows.order_by(f"-{key}", "-pk")[: limit + 1])
    if len(found) <= limit:
        return found, None
    end: Any = found[limit - 1]
    return found[:limit], written(scope, getattr(end, key), end.id)


def changes(
    streams: Mapping[str, QuerySet[Any, Row]],
    *,
    scope: str,
    limit: int,
    cursor: str | None,
    start: datetime | None,
) -> tuple[Sequence[Row], str]:
    """Return the rows since the cursor in the order of their times, and the cursor from which to go on, always.

    Each stream is of rows that have their time in the field by which it is called; no row is in two of them.

    Without a cursor they begin after `start`, if there is one; the cursor keeps it, also that of an empty page.
    Rows that a transaction may still write come later, whatever their key says: `feed.horizon`. Raises InvalidCursor.
    Rule list.changes.
    """
    first: list[Any] = [start, _LAST] if start else [datetime.min.replace(tzinfo=UTC), UUID(int=0)]
    at, last = first if cursor is None else read(cursor, scope, *_PLACE)
    until = feed.horizon()
    found: list[tuple[datetime, UUID, Any]] = []
    for key, rows in streams.items():
        since = rows.filter(
            Q(**{f"{key}__gt": at}) | Q(pk__gt=last), **{f"{key}__gte": at, f"{key}__lt": until}
        )
        in_order: Any = since.order_by(key, "pk")[:limit]
        found += [(getattr(row, key), row.id, row) for row in in_order]
    page = sorted(found, key=itemgetter(0, 1))[:limit]
    go_on = written(scope, *page[-1][:2]) if page else cursor or written(scope, at, last)
    return [row for _, _, row in page], go_on


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
_LAST = UUID(int=(1 << 128) - 1)  # no row of a time comes after it
