"""Proves the ledger: finds every checkout whose recorded money does not agree with its status.

Rule money.proof.
"""

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction

from checkout.models import Checkout
from checkout.proof import references, statements
from checkout.proof.statements import Invariant
from config.lib import batches, clock
from config.lib.database import queries
from payments.closed_days import sums
from payments.discrepancies import kinds, reporting
from payments.discrepancies.definitions import DiscrepancyKind
from payments.models import Posting
from webhooks import retention


class Breach(NamedTuple):
    """A breach of an invariant. The kind identifies the invariant.

    The subject is the checkout, or the merchant whose sums are wrong. For an orphan row (references.py), the subject
    is the missing id, the row's id, or the id of the event to which the row belongs.
    """

    subject: UUID
    kind: DiscrepancyKind
    merchant_uuid: UUID | None


class IdRange(NamedTuple):
    """A range of checkout ids. Both ends are included.

    There might be no checkout with the id `first` or `last`, because these ids can come from a posting or a payment.
    """

    first: UUID
    last: UUID


FIRST, LAST = UUID(int=0), UUID(int=2**128 - 1)
RANGE_SIZE = 5000  # maximum number of checkouts in a range
_CHUNK = 2000


def find_breaches(since: datetime | None = None) -> list[Breach]:
    """Return every breach of every invariant. An empty list proves the ledger.

    With `since`, only recent changes are checked. These are the checkouts whose row, postings or operations have
    changed since then, and the references of rows that were created since then.
    """
    if since is None:
        of_checkouts = [breach for span in id_ranges() for breach in find_breaches_in_range(span)]
        return of_checkouts + [breach for month in ledger_months() for breach in breaches_of_sums(month)]
    with transaction.atomic(durable=True):
        _set_up_proof()
        changed, of_rows = sorted(_changed_checkouts(since)), _orphan_breaches(clock.first_id(since), LAST)
    # Each chunk has its own transaction, because a long transaction would delay the merchants' event feeds.
    chunks = batches.chunks(changed, _CHUNK)
    return of_rows + [breach for these in chunks for breach in _breaches_of(these)]


def id_ranges(first: UUID = FIRST) -> Iterator[IdRange]:
    """Yield consecutive ranges of checkout ids, from `first` to the last possible id.

    The end of a range is read from the database only when the caller requests that range.
    """
    while True:
        last: UUID | None = queries.value(
            statements.FIND_END_OF_RANGE, {"first": first, "size": RANGE_SIZE - 1}
        )
        yield IdRange(first, last or LAST)
        if last is None or last == LAST:
            return
        first = next_id(last)


def next_id(uuid: UUID) -> UUID:
    return UUID(int=uuid.int + 1)


def find_breaches_in_range(span: IdRange) -> list[Breach]:
    """Return the breaches for the checkouts and references in a range of ids."""
    with transaction.atomic(savepoint=True):
        _set_up_proof()
        return _orphan_breaches(*span) + _find_with(statements.BREACHES_OF_RANGE, **span._asdict())


def _orphan_breaches(first: UUID, last: UUID) -> list[Breach]:
    rows = references.find_orphan_rows(first, last)
    return [Breach(row.subject, row.reference.kind, row.merchant_uuid) for row in rows]


def ledger_months(first: date | None = None) -> Iterator[date]:
    """Yield the months of the ledger, from `first` to the month of `sums.last_day()`."""
    month, last = first or sums.first_month(), sums.last_day()
    while month is not None and month <= last:
        yield month
        month = sums.next_month(month)


def breaches_of_sums(month: date) -> list[Breach]:
    """Return a breach for each merchant whose sums for this month differ from the postings.

    Rule money.sums.
    """
    with transaction.atomic(savepoint=True):
        _set_up_proof()
        return [Breach(uuid, kinds.LEDGER_SUMS, uuid) for uuid in sums.merchants_with_wrong_sums(month)]


def report_breaches_since(since: datetime) -> int:
    """Check everything that has changed since this time. Report each breach, and return the number of breaches."""
    return len(report_breaches(find_breaches(since)))


def report_breaches_of(checkout_uuid: UUID) -> list[Breach]:
    """Report each breach of one checkout as a discrepancy, and return the breaches."""
    with transaction.atomic(durable=True):
        return report_breaches(_find_with(statements.BREACHES_OF_CHECKOUTS, these=[checkout_uuid]))


def report_breaches(breaches: list[Breach]) -> list[Breach]:
    """Report each breach as a discrepancy, and return the same list."""
    for breach in breaches:
        reporting.report(breach.kind, breach.subject, merchant=breach.merchant_uuid)
    return breaches


def count_in_range(span: IdRange) -> tuple[int, int]:
    """Return the number of checkouts and the number of postings in a range."""
    checkouts, postings = queries.row(statements.COUNT_CHECKOUTS_AND_POSTINGS, span._asdict())
    return checkouts, postings


def count_changed(since: datetime) -> tuple[int, int]:
    """Return how many checkouts have changed since this time, and how many postings they have together."""
    with transaction.atomic(durable=True):
        _set_up_proof()
        changed = _changed_checkouts(since)
        chunks = batches.chunks(changed, _CHUNK)
        return len(changed), sum(Posting.objects.filter(checkout_uuid__in=these).count() for these in chunks)


def _set_up_proof() -> None:
    queries.execute(statements.SET_UP_PROOF)


def _breaches_of(these: list[UUID]) -> list[Breach]:
    """Return the breaches for these checkouts. Their ids must be sorted.

    The ids of recently changed checkouts are usually close together. If the range from the first to the last id
    contains fewer than twice as many checkouts as requested, the whole range is queried. This costs a third of a query
    for single ids.
    """
    span = IdRange(these[0], these[-1])
    with transaction.atomic(durable=True):
        _set_up_proof()
        rows = Checkout.objects.filter(pk__range=span)
        if rows[: 2 * len(these)].count() == 2 * len(these):
            return _find_with(statements.BREACHES_OF_CHECKOUTS, these=these)
        breaches, subjects = _find_with(statements.BREACHES_OF_RANGE, **span._asdict()), set(these)
        return [breach for breach in breaches if breach.subject in subjects]


def _find_with(query: str, **parameters: Any) -> list[Breach]:
    # The events about checkouts from before this time might have been deleted, so these events are not checked.
    parameters["reported_since"] = retention.events_kept_since()
    return [
        breach
        for invariant in statements.INVARIANTS
        for breach in _breaches_of_invariant(invariant, query, parameters)
    ]


def _breaches_of_invariant(invariant: Invariant, query: str, parameters: dict[str, Any]) -> list[Breach]:
    rows = queries.rows(query.format(invariant=invariant.sql), parameters)
    return [Breach(uuid, invariant.kind, merchant_uuid) for uuid, merchant_uuid in rows]


def _changed_checkouts(since: datetime) -> list[UUID]:
    parameters = {"since": since, "made": clock.first_id(since)}
    return [uuid for (uuid,) in queries.rows(statements.FIND_CHANGED_CHECKOUTS, parameters)]
