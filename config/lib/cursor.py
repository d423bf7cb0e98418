"""Opaque cursors for keyset pages: newest first, or all changes in their order (rules list.pages, list.cursor)."""

from collections.abc import Sequence
from datetime import UTC, datetime
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
        at, last = _read(cursor, scope)
        # `lte` excludes no further row, but only with it does the index begin where the page does.
        rows = rows.filter(Q(**{f"{key}__lt": at}) | Q(pk__lt=last), **{f"{key}__lte": at})
    found = list(rows.order_by(f"-{key}", "-pk")[: limit + 1])
    if len(found) <= limit:
        return found, None
    end: Any = found[limit - 1]
    return found[:limit], _write(getattr(end, key), end.id, scope)


def changes(
    rows: QuerySet[Any, Row], *, scope: str, limit: int, cursor: str | None, key: str
) -> tuple[Sequence[Row], str]:
    """Return the rows since the cursor in the order of the key, and the cursor from which to go on, always.

    Rows that a transaction may still write come later, whatever their key says: `feed.horizon`. Raises InvalidCursor.
    Rule list.changes.
    """
    at, last = (datetime.min.replace(tzinfo=UTC), UUID(int=0)) if cursor is None else _read(cursor, scope)
    rows = rows.filter(
        Q(**{f"{key}__gt": at}) | Q(pk__gt=last), **{f"{key}__gte": at, f"{key}__lt": feed.horizon()}
    )
    found = list(rows.order_by(key, "pk")[:limit])
    end: Any = found[-1] if found else None
    return found, _write(getattr(end, key), end.id, scope) if end else cursor or _write(at, last, scope)


def _write(at: datetime, last: UUID, scope: str) -> str:
    return signing.dumps([at.isoformat(), last.hex], salt=scope)


def _read(cursor: str, scope: str) -> tuple[datetime, UUID]:
    try:
        fields: Any = signing.loads(cursor, salt=scope)
        return datetime.fromisoformat(fields[0]), UUID(fields[1])
    except (signing.BadSignature, ValueError, TypeError, IndexError, UnicodeError):
        raise InvalidCursor from None
