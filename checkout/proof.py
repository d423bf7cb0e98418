"""The ledger against the states: every checkout whose money does not agree with its status is named."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from config.lib import clock
from payments import discrepancies


class Breach(NamedTuple):
    """A checkout, the invariant that it breaks, the name of the discrepancy, and whose checkout it is."""

    checkout_uuid: UUID
    invariant: str
    kind: str
    merchant_uuid: UUID | None


class Invariant(NamedTuple):
    """What always holds, the name of the discrepancy where it does not, and the query for who breaks it."""

    promise: str
    kind: str
    sql: str


# Rule money.proof. Each query returns the checkouts that break its promise, in a column that
# is one of a table's own and, where there are groups, one that is grouped by: so a restriction to some
# checkouts, put around the query, reaches the tables' indexes.
INVARIANTS = (
    Invariant(
        "every transaction sums to zero",
        "ledger_unbalanced",
        """
        SELECT checkout_uuid FROM payments_posting
        GROUP BY checkout_uuid, transaction, currency HAVING sum(amount) <> 0""",
    ),
    Invariant(
        "captured means one capture of the amount, and nothing else does",
        "ledger_capture_and_status",
        """
        SELECT c.id FROM checkout_checkout c
        LEFT JOIN payments_operation o
          ON o.payment_id = c.payment_id AND o.kind = 'capture' AND o.state = 'succeeded'
        WHERE (c.status IN ('captured', 'refunding', 'refunded')) <> (o.id IS NOT NULL)
           OR (o.id IS NOT NULL AND o.amount <> c.amount)""",
    ),
    Invariant(
        "a captured checkout has its payment, which can be refunded",
        "ledger_payment_not_live",
        """
        SELECT c.id FROM checkout_checkout c LEFT JOIN payments_payment p ON p.id = c.payment_id
        WHERE (c.status = 'captured' AND p.status IS DISTINCT FROM 'captured')
           OR (c.status IN ('authorized', 'captured', 'refunding') AND p.abandoned_at IS NOT NULL)""",
    ),
    Invariant(
        "a paid share has its payment, which can be refunded",
        "ledger_share_not_live",
        """
        SELECT s.checkout_id FROM checkout_paymentrequest s JOIN payments_payment p ON p.id = s.payment_id
        WHERE s.status IN ('paid', 'reimbursed') AND (p.status NOT IN ('captured', 'refunded')
           OR p.abandoned_at IS NOT NULL)""",
    ),
    Invariant(
        "nobody pays twice: one capture for one subject",
        "ledger_two_captures",
        """
        SELECT p.checkout_uuid FROM payments_payment p
        JOIN payments_operation o ON o.payment_id = p.id AND o.kind = 'capture' AND o.state = 'succeeded'
        GROUP BY p.checkout_uuid, p.subject HAVING count(*) > 1""",
    ),
    Invariant(
        "no capture was begun after the deadline",
        "ledger_late_capture",
        # Eight seconds for the clocks of two machines. What a pump has sent again was in doubt meanwhile.
        """
        SELECT c.id FROM checkout_checkout c
        JOIN payments_operation o ON o.payment_id = c.payment_id
        WHERE o.kind = 'capture' AND o.state = 'succeeded' AND o.attempts = 1
          AND o.created_at > c.capture_before + interval '8 seconds'""",
    ),
    Invariant(
        "every captured, refunded, disputed or booked amount is in the ledger",
        "ledger_not_posted",
        """
        SELECT p.checkout_uuid FROM payments_payment p JOIN payments_operation o ON o.payment_id = p.id
        LEFT JOIN payments_posting l ON l.transaction = o.id AND l.account = 'provider'
        LEFT JOIN payments_posting e ON e.transaction = o.returned_as AND e.account = 'returned'
        LEFT JOIN payments_posting k ON k.transaction = o.closed_as AND k.account = 'lead'
        WHERE o.state = 'succeeded' AND o.kind IN ('capture', 'refund')
          AND (l.amount IS DISTINCT FROM CASE o.kind WHEN 'capture' THEN o.amount ELSE -o.amount END
            OR (o.returned_as IS NOT NULL AND e.amount IS DISTINCT FROM -o.amount)
            OR (o.closed_as IS NOT NULL AND k.amount IS DISTINCT FROM o.amount))
        UNION ALL
        SELECT d.checkout_uuid FROM payments_dispute d
        LEFT JOIN payments_posting l ON l.transaction = d.id AND l.account = 'disputed'
        LEFT JOIN payments_posting e ON e.transaction = d.decided_as AND e.account = 'disputed'
        WHERE l.amount IS DISTINCT FROM d.amount
           OR (d.decided_as IS NOT NULL AND e.amount IS DISTINCT FROM -d.amount)
        UNION ALL
        SELECT b.checkout_uuid FROM payments_booking b
        LEFT JOIN payments_posting l ON l.transaction = b.id AND l.account = 'provider'
        LEFT JOIN payments_posting e ON e.transaction = b.borne_as AND e.account = b.account
        WHERE l.amount IS DISTINCT FROM -b.amount OR e.amount IS DISTINCT FROM b.amount""",
    ),
    Invariant(
        "the ledger knows of no money that no operation or dispute moved and nobody booked",
        "ledger_without_operation",
        """
        SELECT l.checkout_uuid FROM payments_posting l
        LEFT JOIN (payments_payment p JOIN payments_operation o
          ON o.payment_id = p.id AND o.state = 'succeeded' AND o.kind IN ('capture', 'refund'))
          ON p.checkout_uuid = l.checkout_uuid AND l.transaction IN (o.id, o.returned_as, o.closed_as)
        LEFT JOIN payments_dispute d ON d.checkout_uuid = l.checkout_uuid AND l.transaction IN (d.id, d.decided_as)
        LEFT JOIN payments_booking b ON b.checkout_uuid = l.checkout_uuid AND l.transaction IN (b.id, b.borne_as)
        WHERE coalesce(o.id, d.id, b.id) IS NULL""",
    ),
    Invariant(
        "the cards have borne the amount, and what is owed to the lead, but for what disputes took back",
        "ledger_not_borne",
        # While a refund's legs settle one by one, less what the merchant has given back by then; what mates have
        # paid and a lost dispute gave the lead makes the merchant's loss the less.
        """
        SELECT c.id FROM checkout_checkout c LEFT JOIN payments_posting l ON l.checkout_uuid = c.id
        LEFT JOIN payments_dispute d ON d.checkout_uuid = c.id AND d.decided_as = l.transaction
        LEFT JOIN payments_booking b ON b.checkout_uuid = c.id AND b.borne_as = l.transaction
        LEFT JOIN (payments_payment p JOIN payments_operation o ON o.payment_id = p.id)
          ON p.checkout_uuid = c.id AND o.closed_as = l.transaction
        WHERE c.status IN ('captured', 'refunding')
        GROUP BY c.id
        HAVING coalesce(sum(l.amount) FILTER (WHERE l.account IN ('provider', 'disputed', 'outside', 'returned')), 0)
            <> c.amount - coalesce(sum(l.amount) FILTER (
                WHERE l.account = 'lead' OR (l.account = 'merchant' AND (o.id IS NOT NULL OR (l.amount > 0
                    AND (c.status = 'refunding' OR d.id IS NOT NULL OR b.id IS NOT NULL))))
            ), 0)""",
    ),
    Invariant(
        "what is owed to the lead is what mates have paid and the lead has not got",
        "ledger_owed_to_lead",
        """
        SELECT c.id FROM checkout_checkout c LEFT JOIN LATERAL (
            SELECT sum(l.amount) AS balance FROM payments_posting l
            WHERE l.checkout_uuid = c.id AND l.account = 'lead'
        ) owed ON true LEFT JOIN LATERAL (
            SELECT sum(s.amount) AS amount FROM checkout_paymentrequest s
            WHERE s.checkout_id = c.id AND s.status = 'paid'
        ) paid ON true
        WHERE c.people > 1 AND coalesce(owed.balance, 0) + coalesce(paid.amount, 0) <> 0""",
    ),
    Invariant(
        "a share is paid by one capture of its amount, and nothing else pays it",
        "ledger_share_and_status",
        """
        SELECT s.checkout_id FROM checkout_paymentrequest s
        LEFT JOIN payments_payment p ON p.subject = s.id
        LEFT JOIN payments_operation o
          ON o.payment_id = p.id AND o.kind = 'capture' AND o.state = 'succeeded'
        GROUP BY s.checkout_id, s.id
        HAVING (s.status IN ('paid', 'reimbursed', 'refunded')) <> (count(o.id) = 1)
            OR max(o.amount) <> s.amount""",
    ),
    Invariant(
        "a refunded, voided or unpaid checkout has nothing on any account but what others moved or came back",
        "ledger_not_returned",
        # What came back is with the provider until it is sent again: the two accounts are looked at as one.
        """
        SELECT c.id FROM checkout_checkout c JOIN payments_posting l ON l.checkout_uuid = c.id
        LEFT JOIN payments_dispute d ON d.checkout_uuid = c.id AND l.transaction IN (d.id, d.decided_as)
        WHERE c.status NOT IN ('captured', 'refunding') AND d.id IS NULL
        GROUP BY c.id, CASE l.account WHEN 'returned' THEN 'provider' ELSE l.account END
        HAVING sum(l.amount) <> 0""",
    ),
    Invariant(
        "of a refund that came back an operator knows",
        "ledger_returned_untold",
        """
        SELECT l.checkout_uuid FROM payments_posting l WHERE l.account = 'returned' AND NOT EXISTS (
            SELECT 1 FROM payments_payment p JOIN payments_operation o ON o.payment_id = p.id
            JOIN payments_discrepancy d ON d.subject = o.id
            WHERE p.checkout_uuid = l.checkout_uuid AND d.kind = 'refund_returned' AND d.closed_at IS NULL)
        GROUP BY l.checkout_uuid HAVING sum(l.amount) <> 0""",
    ),
    Invariant(
        "a refunded checkout has a refund of everything that was settled, whatever came back since",
        "ledger_refund_and_status",
        """
        SELECT c.id FROM checkout_checkout c
        LEFT JOIN checkout_refund r ON r.checkout_id = c.id AND (r.status = 'settled'
          OR r.status = 'failed' AND r.settled_at IS NOT NULL AND EXISTS (
              SELECT 1 FROM payments_posting l WHERE l.checkout_uuid = c.id AND l.account = 'returned'))
        WHERE (c.status = 'refunded') <> (r.id IS NOT NULL) OR r.amount <> c.amount""",
    ),
    Invariant(
        "nothing stays held but the one hold of a checkout that waits, unless its end is on its way",
        "ledger_forgotten_hold",
        """
        SELECT p.checkout_uuid FROM payments_payment p JOIN checkout_checkout c ON c.id = p.checkout_uuid
        WHERE p.status = 'authorized'
          AND p.subject = c.id
          AND NOT (c.status = 'authorized' AND c.payment_id = p.id)
          AND NOT EXISTS (
              SELECT 1 FROM payments_operation o
              WHERE o.payment_id = p.id AND o.kind = 'void' AND o.ended_at IS NULL)
        UNION ALL
        SELECT p.checkout_uuid FROM payments_payment p
        WHERE p.status = 'authorized' AND p.subject <> p.checkout_uuid AND NOT EXISTS (
            SELECT 1 FROM payments_operation o JOIN checkout_checkout c ON c.id = p.checkout_uuid
            WHERE o.payment_id = p.id AND o.ended_at IS NULL
              AND (o.kind = 'void' OR c.status IN ('captured', 'refunding')))""",
    ),
    Invariant(
        "what was held has told so once, and nothing else has",
        "ledger_authorized_event",
        """
        SELECT c.id FROM checkout_checkout c
        LEFT JOIN webhooks_event e ON e.checkout_uuid = c.id AND e.type = 'checkout.authorized'
        WHERE c.created_at > %(told_since)s
        GROUP BY c.id HAVING count(e.id) <> CASE WHEN c.authorized_at IS NULL THEN 0 ELSE 1 END""",
    ),
    Invariant(
        "what was held and voided has told so once, and nothing else has",
        "ledger_voided_event",
        """
        SELECT c.id FROM checkout_checkout c
        LEFT JOIN webhooks_event e ON e.checkout_uuid = c.id AND e.type = 'checkout.voided'
        WHERE c.created_at > %(told_since)s
        GROUP BY c.id
        HAVING count(e.id) <> CASE WHEN c.status = 'voided' AND c.authorized_at IS NOT NULL THEN 1 ELSE 0 END""",
    ),
)

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

    With `since`, of the checkouts that have changed since then: the row, a posting or an operation.
    """
    with transaction.atomic():
        _take_time()
        if since is None:
            return [breach for invariant in INVARIANTS for breach in _who_breaks(invariant)]
        chunks = list(_chunks(_changed(since)))
        return [
            breach for invariant in INVARIANTS for these in chunks for breach in _who_breaks(invariant, these)
        ]


def report(since: datetime | None = None) -> int:
    """Leave a discrepancy for each breach, as `breaches`, and return how many there are."""
    return len(_left(breaches(since)))


def report_of(checkout_uuid: UUID) -> list[Breach]:
    """Return what one checkout breaks, and leave a discrepancy for each."""
    with transaction.atomic():
        found = [breach for invariant in INVARIANTS for breach in _who_breaks(invariant, [checkout_uuid])]
    return _left(found)


def _left(found: list[Breach]) -> list[Breach]:
    for breach in found:
        discrepancies.report(
            breach.kind, breach.checkout_uuid, merchant=breach.merchant_uuid, invariant=breach.invariant
        )
    return found


def size(since: datetime | None = None) -> tuple[int, int]:
    """Return how many checkouts and postings a proof speaks of."""
    counting = "SELECT (SELECT count(*) FROM checkout_checkout), (SELECT count(*) FROM payments_posting)"
    of_these = "SELECT count(*) FROM payments_posting WHERE checkout_uuid = ANY(%s)"
    with transaction.atomic(), connection.cursor() as cursor:
        _take_time()
        if since is None:
            cursor.execute(counting)
            row: tuple[int, int] = cursor.fetchone()
            return row
        changed, postings = _changed(since), 0
        for these in _chunks(changed):
            cursor.execute(of_these, [these])
            postings += cursor.fetchone()[0]
        return len(changed), postings


def _take_time() -> None:
    """A proof of everything may take longer than the 15 s that a request's statement has."""
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
