"""SQL statements of the proof: invariants for the money of each checkout, and references without a foreign key.

Rules money.proof, money.nothing_held.
"""

from typing import NamedTuple

from payments.discrepancies import kinds
from payments.discrepancies.definitions import DiscrepancyKind


class Invariant(NamedTuple):
    """An invariant. The query returns the checkouts that break it. Each is reported as a breach of this kind."""

    kind: DiscrepancyKind
    sql: str


class Reference(NamedTuple):
    """A reference without a foreign key.

    The query returns the subject and the merchant of each orphan row. The rows are reported as breaches of this kind.
    """

    kind: DiscrepancyKind
    sql: str


# For each card: the amount that it bears according to movements and bookings, and the amount that disputes took.
_CARDS = """
        SELECT p.checkout_uuid, p.id AS payment_id,
            sum(m.amount) - coalesce((SELECT sum(b.amount) FROM payments_booking b
                WHERE b.payment_id = p.id AND b.kind = 'settled_outside'), 0) AS borne,
            -coalesce(sum(m.amount) FILTER (WHERE m.dispute_id IS NOT NULL), 0) AS disputed
        FROM payments_payment p JOIN payments_movement m ON m.payment_id = p.id
        GROUP BY p.checkout_uuid, p.id"""
_NOT_DISPUTED = """NOT EXISTS (
            SELECT 1 FROM payments_dispute d WHERE d.checkout_uuid = c.id AND d.status = 'open')"""
# True if the card has no open refund, and no open report about a refund. If the card still bears an amount, this amount
# is then unexplained.
_UNEXPLAINED = """NOT EXISTS (
            SELECT 1 FROM payments_operation o
            WHERE o.payment_id = [payment] AND o.kind = 'refund' AND o.ended_at IS NULL)
          AND NOT EXISTS (
            SELECT 1 FROM payments_discrepancy d
            WHERE d.subject = [payment] AND d.kind = 'refund_part_failed' AND d.closed_at IS NULL)
          AND NOT EXISTS (
            SELECT 1 FROM payments_operation o JOIN payments_discrepancy d ON d.subject = o.id
            WHERE o.payment_id = [payment] AND d.closed_at IS NULL
              AND d.kind IN ('refund_returned', 'outside_refund_failed'))"""

# Rule money.proof. Each query returns the ids of the checkouts that break its invariant. The ids come directly from a
# table column, and a query with GROUP BY groups by this column. If an outer query then restricts the ids, PostgreSQL
# can use the table indexes.
INVARIANTS = (
    Invariant(
        kinds.LEDGER_UNBALANCED,
        """
        SELECT checkout_uuid FROM payments_posting
        GROUP BY checkout_uuid, transaction, currency HAVING sum(amount) <> 0""",
    ),
    Invariant(
        kinds.LEDGER_CAPTURE_AND_STATUS,
        """
        SELECT c.id FROM checkout_checkout c
        LEFT JOIN payments_movement m ON m.payment_id = c.payment_id AND m.kind = 'captured'
        WHERE (c.status IN ('captured', 'refunding', 'refunded')) <> (m.id IS NOT NULL)
           OR (m.id IS NOT NULL AND m.amount <> c.amount)""",
    ),
    Invariant(
        kinds.LEDGER_PAYMENT_NOT_LIVE,
        """
        SELECT c.id FROM checkout_checkout c LEFT JOIN payments_payment p ON p.id = c.payment_id
        WHERE (c.status = 'captured' AND p.status IS DISTINCT FROM 'captured')
           OR (c.status IN ('authorized', 'captured', 'refunding') AND p.abandoned_at IS NOT NULL)""",
    ),
    Invariant(
        kinds.LEDGER_SHARE_NOT_LIVE,
        """
        SELECT s.checkout_id FROM checkout_paymentrequest s JOIN payments_payment p ON p.id = s.payment_id
        WHERE s.status IN ('paid', 'reimbursed') AND (p.status NOT IN ('captured', 'refunded')
           OR p.abandoned_at IS NOT NULL)""",
    ),
    Invariant(
        kinds.LEDGER_TWO_CAPTURES,
        """
        SELECT p.checkout_uuid FROM payments_payment p
        JOIN payments_movement m ON m.payment_id = p.id AND m.kind = 'captured'
        GROUP BY p.checkout_uuid, p.subject HAVING count(*) > 1""",
    ),
    Invariant(
        kinds.LEDGER_LATE_CAPTURE,
        # The margin is eight seconds, because the clocks of two machines can differ. A capture with several attempts
        # is not checked, because its outcome was unknown for a while and the pump sent it again.
        """
        SELECT c.id FROM checkout_checkout c
        JOIN payments_operation o ON o.payment_id = c.payment_id
        WHERE o.kind = 'capture' AND o.state = 'succeeded' AND o.attempts = 1
          AND o.created_at > c.capture_before + interval '8 seconds'""",
    ),
    Invariant(
        kinds.LEDGER_NOT_RECORDED,
        """
        SELECT p.checkout_uuid FROM payments_payment p JOIN payments_operation o ON o.payment_id = p.id
        LEFT JOIN payments_movement m ON m.operation_id = o.id AND m.kind IN ('captured', 'refunded')
        WHERE o.kind IN ('capture', 'refund') AND ((o.state = 'succeeded') <> (m.id IS NOT NULL)
           OR m.amount <> CASE o.kind WHEN 'capture' THEN o.amount ELSE -o.amount END OR m.payment_id <> p.id)""",
    ),
    Invariant(
        kinds.LEDGER_NOT_POSTED,
        """
        SELECT m.checkout_uuid FROM payments_movement m
        LEFT JOIN payments_posting l ON l.transaction = m.id AND l.account = 'provider'
        LEFT JOIN payments_posting e ON e.transaction = m.id AND e.account = m.bearer
        WHERE l.amount IS DISTINCT FROM m.amount OR e.amount IS DISTINCT FROM -m.amount
        UNION ALL
        SELECT b.checkout_uuid FROM payments_booking b
        LEFT JOIN payments_posting l ON l.transaction = b.id
          AND l.account = CASE b.kind WHEN 'closing' THEN 'merchant' ELSE 'outside' END
        WHERE l.amount IS DISTINCT FROM -b.amount""",
    ),
    Invariant(
        kinds.LEDGER_WITHOUT_MOVEMENT,
        """
        SELECT l.checkout_uuid FROM payments_posting l
        LEFT JOIN payments_movement m ON m.checkout_uuid = l.checkout_uuid AND m.id = l.transaction
        LEFT JOIN payments_booking b ON b.checkout_uuid = l.checkout_uuid AND b.id = l.transaction
        WHERE coalesce(m.id, b.id) IS NULL""",
    ),
    Invariant(
        kinds.LEDGER_CARD_GOT_TOO_MUCH,
        # Refunds that others made are not counted, because an operator might have already settled the same amount
        # outside. `settle` reports such an excess.
        f"""
        SELECT card.checkout_uuid FROM ({_CARDS}) card
        WHERE card.borne + card.disputed < 0 AND card.borne + card.disputed < (
            SELECT coalesce(sum(m.amount), 0) FROM payments_movement m
            JOIN payments_operation o ON o.id = m.operation_id
            WHERE m.payment_id = card.payment_id AND o.purpose = 'outside'
              AND o.resends_id IS NULL)""",  # noqa: S608 - built from constants only
    ),
    Invariant(
        kinds.LEDGER_CARD_STILL_BEARS,
        f"""
        SELECT card.checkout_uuid FROM ({_CARDS}) card JOIN checkout_checkout c ON c.id = card.checkout_uuid
        WHERE c.status = 'refunded' AND card.borne > 0 AND {_UNEXPLAINED.replace("[payment]", "card.payment_id")}
          AND {_NOT_DISPUTED}""",  # noqa: S608 - built from constants only
    ),
    Invariant(
        kinds.LEDGER_REFUNDED_WHILE_CAPTURED,
        """
        SELECT m.checkout_uuid FROM payments_movement m JOIN checkout_checkout c ON c.id = m.checkout_uuid
        JOIN payments_operation o ON o.id = m.operation_id
        WHERE c.status = 'captured' AND m.kind = 'refunded' AND o.purpose = 'refund_part'
        UNION ALL
        SELECT p.checkout_uuid FROM payments_payment p JOIN payments_operation o ON o.payment_id = p.id
        JOIN payments_movement m ON m.operation_id = o.id AND m.kind IN ('refunded', 'refund_returned')
        JOIN checkout_paymentrequest s ON s.id = o.share_uuid
        WHERE o.purpose = 'reimbursement'
        GROUP BY p.checkout_uuid, s.id, s.amount HAVING -sum(m.amount) > s.amount""",
    ),
    Invariant(
        kinds.LEDGER_WRONG_CARD,
        """
        SELECT p.checkout_uuid FROM payments_payment p JOIN payments_operation o ON o.payment_id = p.id
        JOIN checkout_checkout c ON c.id = p.checkout_uuid
        WHERE o.purpose = 'reimbursement' AND p.id IS DISTINCT FROM c.payment_id""",
    ),
    Invariant(
        kinds.LEDGER_SHARE_NOT_PLANNED,
        f"""
        SELECT s.checkout_id FROM checkout_paymentrequest s JOIN checkout_checkout c ON c.id = s.checkout_id
        LEFT JOIN LATERAL (SELECT -sum(m.amount) AS amount FROM payments_operation o
            JOIN payments_movement m ON m.operation_id = o.id
            LEFT JOIN payments_operation first ON first.id = o.resends_id
            WHERE o.payment_id = c.payment_id AND coalesce(first.share_uuid, o.share_uuid) = s.id) refunded ON true
        LEFT JOIN LATERAL (SELECT sum(b.amount) AS amount FROM payments_booking b
            WHERE b.checkout_uuid = c.id AND b.share_uuid = s.id) booked ON true
        WHERE s.status IN ('paid', 'reimbursed', 'refunded') AND c.status = 'captured'
          AND (s.status = 'paid' OR coalesce(refunded.amount, 0) + coalesce(booked.amount, 0) < s.amount)
          AND NOT EXISTS (
            SELECT 1 FROM payments_operation o WHERE o.share_uuid = s.id AND o.ended_at IS NULL)
          AND NOT EXISTS (
            SELECT 1 FROM payments_discrepancy d WHERE d.subject = s.id AND d.closed_at IS NULL
              AND d.kind IN ('share_not_reimbursed', 'owed_beyond_card'))
          AND NOT EXISTS (
            SELECT 1 FROM payments_operation o JOIN payments_discrepancy d ON d.subject = o.id
            WHERE o.payment_id = c.payment_id AND d.kind = 'refund_returned' AND d.closed_at IS NULL)
          AND {_NOT_DISPUTED}""",  # noqa: S608 - built from constants only
    ),
    Invariant(
        kinds.LEDGER_REFUND_NOT_PLANNED,
        f"""
        SELECT c.id FROM checkout_checkout c
        WHERE c.status = 'refunding' AND NOT EXISTS (
            SELECT 1 FROM payments_payment p JOIN payments_operation o ON o.payment_id = p.id
            WHERE p.checkout_uuid = c.id AND o.kind = 'refund' AND o.ended_at IS NULL)
          AND NOT EXISTS (
            SELECT 1 FROM checkout_paymentrequest s WHERE s.checkout_id = c.id AND s.status = 'paying')
          AND NOT EXISTS (
            SELECT 1 FROM payments_payment p JOIN payments_discrepancy d ON d.subject = p.id
            WHERE p.checkout_uuid = c.id AND d.kind = 'refund_part_failed' AND d.closed_at IS NULL)
          AND {_NOT_DISPUTED}
        UNION
        SELECT c.id FROM checkout_checkout c JOIN payments_payment p ON p.checkout_uuid = c.id
        WHERE c.status = 'refunding'
          AND (SELECT sum(m.amount) FROM payments_movement m WHERE m.payment_id = p.id) > (
            SELECT coalesce(sum(b.amount), 0) FROM payments_booking b
            WHERE b.payment_id = p.id AND b.kind = 'settled_outside')
          AND {_UNEXPLAINED.replace("[payment]", "p.id")}
          AND NOT EXISTS (  -- until a part has succeeded the whole refund can fail, so a refused part waits
            SELECT 1 FROM payments_operation refused
            WHERE refused.payment_id = p.id AND refused.state IN ('failed', 'declined') AND (EXISTS (
                SELECT 1 FROM payments_payment q JOIN payments_operation other ON other.payment_id = q.id
                WHERE q.checkout_uuid = c.id AND other.kind = 'refund' AND other.ended_at IS NULL) OR EXISTS (
                SELECT 1 FROM checkout_paymentrequest s WHERE s.checkout_id = c.id AND s.status = 'paying'))
              AND refused.reason NOT IN ('withdrawn', 'new_key') AND NOT EXISTS (
                SELECT 1 FROM payments_operation given WHERE given.refund_uuid = refused.refund_uuid AND (
                    EXISTS (SELECT 1 FROM payments_movement m WHERE m.operation_id = given.id AND m.kind = 'refunded')
                    OR (SELECT sum(b.amount) FROM payments_booking b WHERE b.operation_id = given.id) > 0)))
          AND {_NOT_DISPUTED}""",  # noqa: S608 - built from constants only
    ),
    Invariant(
        kinds.LEDGER_AGAINST_BALANCE,
        """
        SELECT m.checkout_uuid FROM payments_movement m JOIN payments_payment p ON p.id = m.payment_id
        JOIN payments_balanceentry b ON b.operation = m.operation_id AND b.currency = p.currency
        WHERE m.kind IN ('captured', 'refunded') AND b.kind IN ('payment', 'refund')
          AND sign(b.amount) = sign(m.amount) AND b.amount <> m.amount""",
    ),
    Invariant(
        kinds.LEDGER_OWED_TO_LEAD,
        """
        SELECT c.id FROM checkout_checkout c LEFT JOIN LATERAL (SELECT sum(l.amount) AS balance
            FROM payments_posting l WHERE l.checkout_uuid = c.id AND l.account = 'lead') owed ON true
        WHERE c.people > 1 AND (owed.balance > 0 OR (owed.balance < 0 AND c.status = 'refunded' AND NOT EXISTS (
            SELECT 1 FROM payments_payment p JOIN payments_operation o ON o.payment_id = p.id
            JOIN payments_discrepancy d ON d.subject = o.id
            WHERE p.checkout_uuid = c.id AND d.kind = 'refund_returned' AND d.closed_at IS NULL)))""",
    ),
    Invariant(
        kinds.LEDGER_SHARE_AND_STATUS,
        """
        SELECT s.checkout_id FROM checkout_paymentrequest s
        LEFT JOIN payments_payment p ON p.subject = s.id
        LEFT JOIN payments_movement m ON m.payment_id = p.id AND m.kind = 'captured'
        GROUP BY s.checkout_id, s.id
        HAVING (s.status IN ('paid', 'reimbursed', 'refunded')) <> (count(m.id) = 1)
            OR max(m.amount) <> s.amount""",
    ),
    Invariant(
        kinds.LEDGER_MOVED_WITHOUT_CAPTURE,
        """
        SELECT c.id FROM checkout_checkout c JOIN payments_movement m ON m.checkout_uuid = c.id
        WHERE c.status NOT IN ('captured', 'refunding', 'refunded')
        GROUP BY c.id HAVING sum(m.amount) <> 0""",
    ),
    Invariant(
        kinds.LEDGER_REFUND_AND_STATUS,
        """
        SELECT c.id FROM checkout_checkout c
        LEFT JOIN checkout_refund r ON r.checkout_id = c.id AND r.settled_at IS NOT NULL
        WHERE (c.status = 'refunded') <> (r.id IS NOT NULL) OR r.amount <> c.amount""",
    ),
    Invariant(
        kinds.LEDGER_FORGOTTEN_HOLD,
        """
        SELECT p.checkout_uuid FROM payments_payment p JOIN checkout_checkout c ON c.id = p.checkout_uuid
        WHERE p.status = 'authorized'
          AND p.kind = 'order'
          AND NOT (c.status = 'authorized' AND c.payment_id = p.id)
          AND NOT EXISTS (
              SELECT 1 FROM payments_operation o
              WHERE o.payment_id = p.id AND o.kind = 'void' AND o.ended_at IS NULL)
        UNION ALL
        SELECT p.checkout_uuid FROM payments_payment p
        WHERE p.status = 'authorized' AND p.kind = 'share' AND NOT EXISTS (
            SELECT 1 FROM payments_operation o JOIN checkout_checkout c ON c.id = p.checkout_uuid
            WHERE o.payment_id = p.id AND o.ended_at IS NULL
              AND (o.kind = 'void' OR c.status IN ('captured', 'refunding')))
          AND (p.abandoned_at IS NOT NULL OR 'pledged' IS DISTINCT FROM (
            SELECT s.status FROM checkout_paymentrequest s WHERE s.id = p.subject))""",
    ),
    Invariant(
        kinds.LEDGER_PLEDGE,
        """
        SELECT s.checkout_id FROM checkout_paymentrequest s JOIN checkout_checkout c ON c.id = s.checkout_id
        WHERE s.status = 'pledged' AND (c.status NOT IN ('created', 'authorized') OR NOT EXISTS (
            SELECT 1 FROM payments_payment p
            WHERE p.subject = s.id AND p.status = 'authorized' AND p.abandoned_at IS NULL))""",
    ),
    Invariant(
        kinds.LEDGER_AUTHORIZED_EVENT,
        """
        SELECT c.id FROM checkout_checkout c
        LEFT JOIN webhooks_event e ON e.checkout_uuid = c.id AND e.type = 'checkout.authorized'
        WHERE c.created_at > %(reported_since)s
        GROUP BY c.id HAVING count(e.id) <> CASE WHEN c.authorized_at IS NULL THEN 0 ELSE 1 END""",
    ),
    Invariant(
        kinds.LEDGER_VOIDED_EVENT,
        """
        SELECT c.id FROM checkout_checkout c
        LEFT JOIN webhooks_event e ON e.checkout_uuid = c.id AND e.type = 'checkout.voided'
        WHERE c.created_at > %(reported_since)s
        GROUP BY c.id
        HAVING count(e.id) <> CASE WHEN c.status = 'voided' AND c.authorized_at IS NOT NULL THEN 1 ELSE 0 END""",
    ),
)

# References that no foreign key enforces (references.py).
_OF_MERCHANTS = (
    "webhooks_event",
    "checkout_apicall",
    "checkout_checkout",
    "payments_payment",
    "payments_posting",
)
_ROWS_WITHOUT_MERCHANT = """
        SELECT t.id, NULL FROM {table} t LEFT JOIN payments_merchant m ON m.id = t.merchant_id
        WHERE t.id BETWEEN %(first)s AND %(last)s AND m.id IS NULL"""
REFERENCES = (
    Reference(
        kinds.LEDGER_MERCHANT_MISSING,
        "\nUNION ALL".join(_ROWS_WITHOUT_MERCHANT.replace("{table}", table) for table in _OF_MERCHANTS),
    ),
    Reference(
        kinds.LEDGER_EVENT_MISSING,
        """
        SELECT d.event_id, d.merchant_id FROM webhooks_delivery d
        LEFT JOIN webhooks_event e ON e.id = d.event_id AND e.id BETWEEN %(earliest)s AND %(latest)s
          AND (e.merchant_id, e.type) = (d.merchant_id, d.event_type)
        WHERE d.id BETWEEN %(first)s AND %(last)s AND e.id IS NULL""",
    ),
    Reference(
        kinds.LEDGER_SUBSCRIPTION_MISSING,
        """
        SELECT d.event_id, d.merchant_id FROM webhooks_delivery d
        LEFT JOIN webhooks_subscription s ON s.id = d.subscription_id AND s.merchant_id = d.merchant_id
        WHERE d.id BETWEEN %(first)s AND %(last)s AND s.id IS NULL""",
    ),
    Reference(
        kinds.LEDGER_DELIVERED_TWICE,
        """
        SELECT waiting.event_id, waiting.merchant_id FROM webhooks_delivery_pending waiting
        JOIN webhooks_delivery_ended ended USING (event_id, subscription_id)
        WHERE waiting.id BETWEEN %(first)s AND %(last)s AND ended.id BETWEEN %(earliest)s AND %(latest)s""",
    ),
    Reference(
        kinds.LEDGER_DELIVERY_MISSING,
        """
        SELECT a.delivery_id, a.merchant_id FROM webhooks_attempt a
        LEFT JOIN webhooks_delivery d ON d.id = a.delivery_id AND d.id BETWEEN %(earliest)s AND %(latest)s
          AND (d.merchant_id, d.event_type) = (a.merchant_id, a.event_type)
        WHERE a.id BETWEEN %(first)s AND %(last)s AND d.id IS NULL""",
    ),
)

# The proof can take longer than 15 s, the statement timeout for a request. It reads only a few rows of large tables
# by index. PostgreSQL does not know that many of these rows are next to each other. Without these settings, it would
# read whole tables with parallel workers, which costs more.
SET_UP_PROOF = """
SELECT set_config('statement_timeout', '0', true), set_config('max_parallel_workers_per_gather', '0', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
    set_config('random_page_cost', '1.1', true)
"""

_BREACHES = """
SELECT DISTINCT broken.checkout_uuid, c.merchant_id FROM ({invariant}) AS broken (checkout_uuid)
LEFT JOIN checkout_checkout c ON c.id = broken.checkout_uuid
"""
BREACHES_OF_CHECKOUTS = _BREACHES + "WHERE broken.checkout_uuid = ANY(%(these)s)"
BREACHES_OF_RANGE = _BREACHES + "WHERE broken.checkout_uuid BETWEEN %(first)s AND %(last)s"
# A range ends after `size` checkouts, or earlier if it has many postings or payments without a checkout.
FIND_END_OF_RANGE = """
SELECT least(
    (SELECT id FROM checkout_checkout WHERE id >= %(first)s ORDER BY id OFFSET %(size)s LIMIT 1),
    (SELECT checkout_uuid FROM payments_posting WHERE checkout_uuid >= %(first)s
     ORDER BY checkout_uuid OFFSET 8 * %(size)s LIMIT 1),
    (SELECT checkout_uuid FROM payments_payment WHERE checkout_uuid >= %(first)s
     ORDER BY checkout_uuid OFFSET 4 * %(size)s LIMIT 1)
)
"""
COUNT_CHECKOUTS_AND_POSTINGS = """
SELECT (SELECT count(*) FROM checkout_checkout WHERE id BETWEEN %(first)s AND %(last)s),
       (SELECT count(*) FROM payments_posting WHERE checkout_uuid BETWEEN %(first)s AND %(last)s)
"""
# Ids are UUIDv7, so the condition on `id` lets PostgreSQL find the new rows at the end of the primary key.
FIND_CHANGED_CHECKOUTS = """
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
