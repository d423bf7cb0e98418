"""The invariants of every checkout's money, as a table: each promise with a query for the checkouts that break it.

Rules money.proof, money.nothing_held.
"""

from typing import NamedTuple


class Invariant(NamedTuple):
    """A promise, the kind of discrepancy that reports a breach, and the query for the checkouts that break it."""

    promise: str
    kind: str
    sql: str


# Rule money.proof. Each query returns the checkouts that break its promise in a plain column of a table, by which it
# groups if it does: so a restriction to some checkouts, put around the query, can use the tables' indexes.
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
        # Eight seconds, as two machines' clocks may differ. One that a pump has sent again was in doubt meanwhile.
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
        # While a refund's parts settle one by one, less what the merchant has given back so far. What mates have paid
        # reduces the merchant's loss, where a lost dispute has given the lead the same money.
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
        # What came back is with the provider until it is sent again: the two accounts count as one.
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
