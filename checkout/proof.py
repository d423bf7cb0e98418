"""The ledger against the states: every checkout whose money does not agree with its status is named."""

from typing import NamedTuple
from uuid import UUID

from django.db import connection


class Breach(NamedTuple):
    """A checkout, and the invariant that it breaks."""

    checkout_uuid: UUID | None
    invariant: str


# Each returns the checkouts that break it. INTERFACE.md 5, DESIGN.md 5.
INVARIANTS = {
    "every transaction sums to zero": """
        SELECT min(checkout_uuid::text)::uuid FROM payments_posting
        GROUP BY transaction, currency HAVING sum(amount) <> 0""",
    "captured means one capture of the amount, and nothing else does": """
        SELECT c.id FROM checkout_checkout c
        LEFT JOIN payments_operation o
          ON o.payment_id = c.payment_id AND o.kind = 'capture' AND o.state = 'succeeded'
        WHERE (c.status IN ('captured', 'refunding', 'refunded')) <> (o.id IS NOT NULL)
           OR (o.id IS NOT NULL AND o.amount <> c.amount)""",
    "every captured or refunded amount is in the ledger": """
        SELECT p.checkout_uuid FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id
        LEFT JOIN payments_posting l ON l.transaction = o.id AND l.account = 'provider'
        WHERE o.state = 'succeeded' AND o.kind IN ('capture', 'refund')
          AND l.amount IS DISTINCT FROM CASE o.kind WHEN 'capture' THEN o.amount ELSE -o.amount END""",
    "the ledger knows of no money that no operation moved": """
        SELECT l.checkout_uuid FROM payments_posting l LEFT JOIN payments_operation o
          ON o.id = l.transaction AND o.state = 'succeeded' AND o.kind IN ('capture', 'refund')
        WHERE o.id IS NULL""",
    "the cards have borne the amount, and what is owed to the lead": """
        SELECT c.id FROM checkout_checkout c
        LEFT JOIN (SELECT checkout_uuid,
                          sum(amount) FILTER (WHERE account = 'provider') AS borne,
                          sum(-amount) FILTER (WHERE account = 'lead') AS owed
                   FROM payments_posting GROUP BY checkout_uuid) l ON l.checkout_uuid = c.id
        WHERE c.status IN ('captured', 'refunding')
          AND coalesce(l.borne, 0) <> c.amount + coalesce(l.owed, 0)""",
    "a refunded, voided or unpaid checkout has nothing on any account": """
        SELECT c.id FROM checkout_checkout c JOIN payments_posting l ON l.checkout_uuid = c.id
        WHERE c.status NOT IN ('captured', 'refunding')
        GROUP BY c.id, l.account HAVING sum(l.amount) <> 0""",
    "a refunded checkout has a settled refund of everything": """
        SELECT c.id FROM checkout_checkout c
        LEFT JOIN checkout_refund r ON r.checkout_id = c.id AND r.status = 'settled'
        WHERE (c.status = 'refunded') <> (r.id IS NOT NULL) OR r.amount <> c.amount""",
}


def breaches() -> list[Breach]:
    """Return every breach of every invariant; an empty list is the proof."""
    found = []
    with connection.cursor() as cursor:
        for invariant, sql in INVARIANTS.items():
            cursor.execute(sql)
            found += [
                Breach(checkout_uuid, invariant) for checkout_uuid in {row[0] for row in cursor.fetchall()}
            ]
    return found


def size() -> tuple[int, int]:
    """Return how many checkouts and postings a proof speaks of."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT count(*) FROM checkout_checkout), (SELECT count(*) FROM payments_posting)"
        )
        row: tuple[int, int] = cursor.fetchone()
    return row
