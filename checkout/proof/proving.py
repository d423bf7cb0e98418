"""Proving the ledger: finds every checkout whose money does not agree with its status (rule money.proof)."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from checkout.proof import references
from checkout.proof.invariants import INVARIANTS, Invariant
from config.lib import clock
from payments import discrepancies


class Breach(NamedTuple):
    """A checkout, the invariant that it breaks, the kind of the discrepancy, and the checkout's merchant.

    Of a row that refers to nothing (references.py), the id of what is missing stands in the checkout's place.
    """

    checkout_uuid: UUID
    invariant: str
    kind: str
    merchant_uuid: UUID | None


_ALL = """
SELECT DISTINCT broken.checkout_uuid, c.merchant_id FROM ({invariant}) AS broken (checkout_uuid)
LEFT JOIN checkout_checkout c ON c.id = broken.checkout_uuid
"""
_THESE = _ALL + "WHERE broken.checkout_uuid = ANY(%(these)s)"
_CHUNK = 500

# Ids are UUIDv7: what was made since then lies at the end of the primary key.
_CHANGED = """
SELECT c.id FROM payments_merchant m JOIN checkout_checkout c ON c.merchant_id = m.id
WHERE c.updated_at >= %(since)s
UNION
SELECT checkout_uuid FROM payments_posting WHERE id >= %(first)s AND created_at >= %(since)s
UNION
SELECT p.checkout_uuid FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id
WHERE (o.id >= %(first)s AND o.created_at >= %(since)s)
UNION
SELECT p.checkout_uuid FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id
WHERE o.ended_at >= %(since)s
"""


def breaches(since: datetime | None = None) -> list[Breach]:
    """Return every breach of every invariant; an empty list is the proof.

    With `since`, only of checkouts whose row, postings or operations have changed since then, and of rows made since.
    """
    with transaction.atomic():
        _disable_statement_timeout()
        lost = [
            Breach(row.subject, row.reference.promise, row.reference.kind, row.merchant_uuid)
            for row in references.lost(since)
        ]
        if since is None:
            return lost + [breach for invariant in INVARIANTS for breach in _who_breaks(invariant)]
        chunks = list(_chunks(_changed(since)))
        return lost + [
            breach for invariant in INVARIANTS for these in chunks for breach in _who_breaks(invariant, these)
        ]


def report(since: datetime | None = None) -> int:
    """Report each breach that `breaches` returns as a discrepancy; return how many there are."""
    return len(_reported(breaches(since)))


def report_of(checkout_uuid: UUID) -> list[Breach]:
    """Return the breaches of one checkout, and report each as a discrepancy."""
    with transaction.atomic():
        found = [breach for invariant in INVARIANTS for breach in _who_breaks(invariant, [checkout_uuid])]
    return _reported(found)


def _reported(found: list[Breach]) -> list[Breach]:
    for breach in found:
        discrepancies.report(
            breach.kind, breach.checkout_uuid, merchant=breach.merchant_uuid, invariant=breach.invariant
        )
    return found


def size(since: datetime | None = None) -> tuple[int, int]:
    """Return how many checkouts and postings a proof covers."""
    counting = "SELECT (SELECT count(*) FROM checkout_checkout), (SELECT count(*) FROM payments_posting)"
    of_these = "SELECT count(*) FROM payments_posting WHERE checkout_uuid = ANY(%s)"
    with transaction.atomic(), connection.cursor() as cursor:
        _disable_statement_timeout()
        if since is None:
            cursor.execute(counting)
            row: tuple[int, int] = cursor.fetchone()
            return row
        changed, postings = _changed(since), 0
        for these in _chunks(changed):
            cursor.execute(of_these, [these])
            postings += cursor.fetchone()[0]
        return len(changed), postings


def _disable_statement_timeout() -> None:
    """Let the transaction's statements take as long as they need: a proof may take longer than a request's 15 s."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")


def _who_breaks(invariant: Invariant, these: list[UUID] | None = None) -> list[Breach]:
    query = _ALL if these is None else _THESE
    with connection.cursor() as cursor:
        told_since = clock.now() - settings.WEBHOOK_RETENTION  # older events may be gone
        cursor.execute(query.format(invariant=invariant.sql), {"these": these, "told_since": told_since})
        return [
            Breach(checkout_uuid, invariant.promise, invariant.kind, merchant_uuid)
            for checkout_uuid, merchant_uuid in cursor.fetchall()
        ]


def _changed(since: datetime) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(_CHANGED, {"since": since, "first": clock.first_id(since)})
        return [row[0] for row in cursor.fetchall()]


def _chunks(checkouts: list[UUID]) -> Iterable[list[UUID]]:
    return (checkouts[start : start + _CHUNK] for start in range(0, len(checkouts), _CHUNK))
