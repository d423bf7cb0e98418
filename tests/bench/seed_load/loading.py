"""Fills the database with checkouts that have come to rest, and all that belongs to them, by COPY.

Their money is in the ledger but in no bank's books: they are there to be looked at.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Model

from checkout.models import CALLS
from config.lib import clock
from config.lib.database import partitions
from payments.models import Merchant
from tests.bench.seed_load.past_orders import COLUMNS, FACTS, Book
from webhooks.models import EVENTS

CHUNK = 10_000  # checkouts a transaction
# Older than what reconciliation asks the provider about, which has never heard of these; younger than 30 days.
FIRST, LAST = timedelta(days=25), timedelta(days=3)
_SETTINGS = (
    "SET LOCAL statement_timeout = 0",
    # Nobody knows the chunk's statistics yet: without these the whole table is read for each move.
    "SET LOCAL enable_hashjoin = off",
    "SET LOCAL enable_mergejoin = off",
)
_ENDS = """
CREATE TEMP TABLE ends ON COMMIT DROP AS
SELECT id, status, payment_id, authorized_at, capture_before, captured_at, voided_at, void_reason, expired_at,
       refunded_amount, last_refund_at
FROM checkout_checkout WHERE false
"""
_MOVES = (
    """
    UPDATE checkout_checkout c
    SET status = 'authorized', payment_id = e.payment_id, authorized_at = e.authorized_at,
        capture_before = e.capture_before
    FROM ends e WHERE e.id = c.id AND e.authorized_at IS NOT NULL
    """,
    """
    UPDATE checkout_checkout c SET status = 'captured', captured_at = e.captured_at
    FROM ends e WHERE e.id = c.id AND e.captured_at IS NOT NULL
    """,
    """
    UPDATE checkout_checkout c SET status = 'voided', voided_at = e.voided_at, void_reason = e.void_reason
    FROM ends e WHERE e.id = c.id AND e.status = 'voided'
    """,
    """
    UPDATE checkout_checkout c SET status = 'expired', expired_at = e.expired_at
    FROM ends e WHERE e.id = c.id AND e.status = 'expired'
    """,
    """
    UPDATE checkout_checkout c SET status = 'refunding' FROM ends e WHERE e.id = c.id AND e.status = 'refunded'
    """,
    """
    UPDATE checkout_checkout c
    SET status = 'refunded', refunded_amount = e.refunded_amount, last_refund_at = e.last_refund_at
    FROM ends e WHERE e.id = c.id AND e.status = 'refunded'
    """,
)


class CannotLoad(Exception):
    """A sentence about what is missing, or in the way."""


def load(wanted: int, *, merchant_uuid: UUID | None = None, say: Callable[[str], object]) -> None:
    """Make so many checkouts of the merchant, the oldest one if none is named; tell how far it is.

    Raises CannotLoad in production, for a merchant that there is not, and for no checkouts.
    """
    if settings.ENVIRONMENT == "production":
        raise CannotLoad("These orders never happened: they do not belong into production.")
    if wanted < 1:
        raise CannotLoad("There must be at least 1 checkout.")
    merchant, started, rows = _merchant(merchant_uuid), time.monotonic(), 0
    for done, written in _load(merchant, wanted):
        rows += written
        rate = rows / (time.monotonic() - started)
        say(f"{done:>9,} of {wanted:,} checkouts · {rows:,} rows · {rate:,.0f} rows/s")
    _analyze()
    say(f"{merchant.name} ({merchant.pk}) has {wanted:,} checkouts more.")


def _merchant(merchant_uuid: UUID | None) -> Merchant:
    rows = Merchant.objects.order_by("created_at")
    found = rows.first() if merchant_uuid is None else rows.filter(pk=merchant_uuid).first()
    if found is None:
        which = "There is no merchant" if merchant_uuid is None else f"No merchant has the id {merchant_uuid}"
        raise CannotLoad(f"{which}: make one with create_merchant.")
    return found


def _load(merchant: Merchant, wanted: int) -> Iterator[tuple[int, int]]:
    """Write chunk after chunk; yield how many checkouts there are so far, and the rows of the chunk."""
    now = clock.now()
    first = now - FIRST
    for table in (EVENTS, CALLS):
        partitions.make(table, first.date(), now.date())
    step = (FIRST - LAST) / wanted
    for start, end in pairwise([*range(0, wanted, CHUNK), wanted]):
        book = Book(merchant)
        for number in range(start, end):
            book.tell(first + number * step)
        _write(book)
        yield end, sum(map(len, book.rows.values()))


def _write(book: Book) -> None:
    """All of a chunk or nothing, with every constraint and guard awake: each checkout begins as created."""
    with transaction.atomic(), connection.cursor() as cursor:
        for setting in _SETTINGS:
            cursor.execute(setting)
        for model, rows in book.rows.items():
            columns, defaults = _columns(model)
            _copy(cursor, model._meta.db_table, columns, (row + defaults for row in rows))
        cursor.execute(_ENDS)
        _copy(cursor, "ends", FACTS, book.ends)
        for move in _MOVES:
            cursor.execute(move)


def _columns(model: type[Model]) -> tuple[list[str], tuple[Any, ...]]:
    """What the rows of a table give and what has a default, and those defaults."""
    given = COLUMNS[model].split()
    kept = (field for field in model._meta.concrete_fields if not field.generated)  # by PostgreSQL itself
    fields = {str(field.column): field for field in kept}
    rest = {name: field for name, field in fields.items() if name not in given and not field.null}
    return [*given, *rest], tuple(field.get_default() for field in rest.values())


def _copy(cursor: Any, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    names = ", ".join(f'"{name}"' for name in columns)
    with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _analyze() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute("ANALYZE")
