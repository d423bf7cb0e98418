"""Proof of the ledger: finds every checkout whose money does not agree with its status.

Rule money.proof.
"""

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from checkout.proof import references
from checkout.proof.invariants import INVARIANTS, Invariant
from config.lib import batches, clock
from payments.closed_days import sums
from payments.discrepancies import kinds, reporting
from payments.discrepancies.definitions import DiscrepancyKind
from webhooks import retention


class Breach(NamedTuple):
    """Breach of an invariant: its subject, and its kind, which says what is broken.

    The subject is the checkout, or the merchant whose sums are wrong. For an orphan row (references.py), it
    is the missing id, the row's id or its event's id.
    """

    subject: UUID
    kind: DiscrepancyKind
    merchant_uuid: UUID | None


class Range(NamedTuple):
    """Range of checkout ids that includes both ends. Some ids can exist only in a posting or a payment."""

    first: UUID
    last: UUID


FIRST, LAST = UUID(int=0), UUID(int=2**128 - 1)
SIZE = 5000  # maximum of checkouts in a range
_CHUNK = 2000
# The proof can take longer than a request's 15 s. It reads few rows of large tables, each by an index.
# PostgreSQL does not know how many of these rows are next to each other. Without these settings it would read
# whole tables with parallel workers, which costs more.
_SETTINGS = """
SELECT set_config('statement_timeout', '0', true), set_config('max_parallel_workers_per_gather', '0', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
    set_config('random_page_cost', '1.1', true)
"""

_ALL = """
SELECT DISTINCT broken.checkout_uuid, c.merchant_id FROM ({invariant}) AS broken (checkout_uuid)
LEFT JOIN checkout_checkout c ON c.id = broken.checkout_uuid
"""
_THESE = _ALL + "WHERE broken.checkout_uuid = ANY(%(these)s)"
_WITHIN = _ALL + "WHERE broken.checkout_uuid BETWEEN %(first)s AND %(last)s"
# The end of a range: after so many checkouts, or after so many rows that might belong to no checkout.
_END = """
SELECT least(
    (SELECT id FROM checkout_checkout WHERE id >= %(first)s ORDER BY id OFFSET %(size)s LIMIT 1),
    (SELECT checkout_uuid FROM payments_posting WHERE checkout_uuid >= %(first)s
     ORDER BY checkout_uuid OFFSET 8 * %(size)s LIMIT 1),
    (SELECT checkout_uuid FROM payments_payment WHERE checkout_uuid >= %(first)s
     ORDER BY checkout_uuid OFFSET 4 * %(size)s LIMIT 1)
)
"""
_BETWEEN = """
SELECT count(*) FROM (SELECT 1 FROM checkout_checkout WHERE id BETWEEN %(first)s AND %(last)s LIMIT %(limit)s) found
"""
_COUNT = """
SELECT (SELECT count(*) FROM checkout_checkout WHERE id BETWEEN %(first)s AND %(last)s),
       (SELECT count(*) FROM payments_posting WHERE checkout_uuid BETWEEN %(first)s AND %(last)s)
"""
# Ids are UUIDv7. Rows made since that moment are at the end of the primary key.
_CHANGED = """
SELECT c.id FROM payments_merchant m JOIN checkout_checkout c ON c.merchant_id = m.id
WHERE c.updated_at >= %(since)s
UNION
SELECT checkout_uuid FROM payments_posting WHERE id >= %(made)s AND created_at >= %(since)s
UNION
SELECT p.checkout_uuid FROM payments_payment p JOIN (
    SELECT payment_id FROM payments_operation WHERE id >= %(made)s AND created_at >= %(since)s
    UNION
    SELECT payment_id FROM payments_operation WHERE ended_at >= %(since)s
) o ON o.payment_id = p.id
"""


def breaches(since: datetime | None = None) -> list[Breach]:
    """Return every breach of every invariant. An empty list is the proof.

    With `since`, only checkouts whose row, postings or operations have changed since then are proved, and
    rows made since then.
    """
    if since is None:
        of_checkouts = [breach for span in ranges() for breach in breaches_within(span)]
        return of_checkouts + [breach for month in months() for breach in breaches_of_sums(month)]
    with transaction.atomic(durable=True):
        _prepare()
        changed, of_rows = sorted(_changed(since)), _lost(clock.first_id(since), LAST)
    # Each chunk has its own transaction, because a long transaction would hold up the feeds.
    chunks = batches.chunks(changed, _CHUNK)
    return of_rows + [breach for these in chunks for breach in _breaches_of(these)]


def ranges(first: UUID = FIRST) -> Iterator[Range]:
    """Yield the ranges of all checkouts from this id on.

    The rows that exist when a range is reached decide how long it is.
    """
    while True:
        ((last,),) = _rows(_END, {"first": first, "size": SIZE - 1})
        yield Range(first, last or LAST)
        if last is None or last == LAST:
            return
        first = after(last)


def after(uuid: UUID) -> UUID:
    """Return the next id."""
    return UUID(int=uuid.int + 1)


def breaches_within(span: Range) -> list[Breach]:
    """Return the breaches of a range's checkouts."""
    with transaction.atomic(savepoint=True):
        _prepare()
        return _lost(*span) + _breaches(_WITHIN, first=span.first, last=span.last)


def _lost(first: UUID, last: UUID) -> list[Breach]:
    found = references.lost(first, last)
    return [Breach(row.subject, row.reference.kind, row.merchant_uuid) for row in found]


def months(first: date | None = None) -> Iterator[date]:
    """Yield the months of the ledger from this one on, up to today or the last day that is summed."""
    month, last = first or sums.first_month(), sums.last_day()
    while month is not None and month <= last:
        yield month
        month = sums.next_month(month)


def breaches_of_sums(month: date) -> list[Breach]:
    """Return a breach for each merchant whose sums of a month differ from the postings (rule money.sums)."""
    with transaction.atomic(savepoint=True):
        _prepare()
        return [Breach(uuid, kinds.LEDGER_SUMS, uuid) for uuid in sums.wrong_in(month)]


def report(since: datetime) -> int:
    """Report each breach in what has changed since then as a discrepancy; return the number of breaches."""
    return len(reported(breaches(since)))


def report_of(checkout_uuid: UUID) -> list[Breach]:
    """Report each breach of one checkout as a discrepancy, and return the breaches."""
    with transaction.atomic(durable=True):
        return reported(_breaches(_THESE, these=[checkout_uuid]))


def reported(found: list[Breach]) -> list[Breach]:
    """Report each breach as a discrepancy, and return the same list."""
    for breach in found:
        reporting.report(breach.kind, breach.subject, merchant=breach.merchant_uuid)
    return found


def size_within(span: Range) -> tuple[int, int]:
    """Return the number of checkouts and the number of postings in a range."""
    ((checkouts, postings),) = _rows(_COUNT, {"first": span.first, "last": span.last})
    return checkouts, postings


def size(since: datetime) -> tuple[int, int]:
    """Return how many checkouts have changed since then, and how many postings they have in total."""
    of_these = "SELECT count(*) FROM payments_posting WHERE checkout_uuid = ANY(%(these)s)"
    with transaction.atomic(durable=True):
        _prepare()
        changed = _changed(since)
        chunks = batches.chunks(changed, _CHUNK)
        return len(changed), sum(_rows(of_these, {"these": these})[0][0] for these in chunks)


def _prepare() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SETTINGS)


def _breaches_of(these: list[UUID]) -> list[Breach]:
    """Return the breaches of these checkouts, whose ids are in order.

    Checkouts that changed lately are next to each other. A query of a range costs a third of a query of as
    many single ids.
    """
    span = {"first": these[0], "last": these[-1]}
    with transaction.atomic(durable=True):
        _prepare()
        ((count,),) = _rows(_BETWEEN, span | {"limit": 2 * len(these)})
        if count == 2 * len(these):
            return _breaches(_THESE, these=these)
        wanted = set(these)
        return [breach for breach in _breaches(_WITHIN, **span) if breach.subject in wanted]


def _breaches(query: str, **of: Any) -> list[Breach]:
    of["told_since"] = retention.kept_since()  # older events can be deleted already
    return [breach for invariant in INVARIANTS for breach in _who_breaks(invariant, query, of)]


def _who_breaks(invariant: Invariant, query: str, of: dict[str, Any]) -> list[Breach]:
    found = _rows(query.format(invariant=invariant.sql), of)
    return [Breach(uuid, invariant.kind, merchant_uuid) for uuid, merchant_uuid in found]


def _changed(since: datetime) -> list[UUID]:
    return [uuid for (uuid,) in _rows(_CHANGED, {"since": since, "made": clock.first_id(since)})]


def _rows(statement: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
