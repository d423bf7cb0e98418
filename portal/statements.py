"""The SQL in this package: the latest changes, the home page's figures, the checklist, estimates and keys' secrets."""

from portal.dashboard.histogram import ANSWER_MS, HOLD_SECONDS, SLOTS
from webhooks.models import EventType

# The current position of the database's log. If the database was restored from another server's backup, a
# stored position can be higher. Such a position is ignored.
_LOG_POSITION = "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
# If two transactions run this at the same time, the second waits for the first, and stores a later position.
STORE_LAST_WRITE = f"""
INSERT INTO portal_lastwrite (whose, position) VALUES (%s, {_LOG_POSITION})
ON CONFLICT (whose) DO UPDATE SET position = {_LOG_POSITION}
"""  # noqa: S608 - made only of our own constants
READ_LAST_WRITE = f"""
SELECT position FROM portal_lastwrite WHERE whose = %s AND position <= {_LOG_POSITION}
"""  # noqa: S608 - made only of our own constants

# Every role can read this view. If a failure is older than the last success, it is over.
IS_ARCHIVE_FAILING = """
SELECT current_setting('archive_mode') <> 'off'
    AND coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false)
FROM pg_stat_archiver
"""

ESTIMATE_ROWS = "SELECT relname, reltuples FROM pg_class WHERE oid = ANY(%s::regclass[])"

# The figures of one hour. A histogram column lists the slot of each event, and Python counts the events per
# slot.
COUNT_PAYMENTS = f"""
SELECT c.merchant_id, c.currency,
    count(*) FILTER (WHERE ch."to" = 'captured') AS captured_count,
    coalesce(sum(c.amount) FILTER (WHERE ch."to" = 'captured'), 0) AS captured_amount,
    count(*) FILTER (WHERE ch."to" = 'voided' AND c.void_reason = 'merchant_cancel') AS cancelled_count,
    count(*) FILTER (WHERE ch."to" = 'voided' AND c.void_reason = 'auth_expired') AS lapsed_count,
    coalesce(sum(c.amount) FILTER (WHERE ch."to" = 'voided' AND c.void_reason = 'auth_expired'), 0) AS lapsed_amount,
    count(*) FILTER (WHERE ch."to" = 'refunded') AS refunded_count,
    coalesce(sum(c.amount) FILTER (WHERE ch."to" = 'refunded'), 0) AS refunded_amount,
    array_agg({HOLD_SECONDS.sql.format(value="extract(epoch FROM c.captured_at - c.authorized_at)")})
        FILTER (WHERE ch."to" = 'captured') AS hold_times
FROM checkout_change ch JOIN checkout_checkout c ON c.id = ch.checkout_id
WHERE ch.id >= %(first)s AND ch.id < %(last)s
  AND (ch.origin = 'authorized' AND ch."to" IN ('captured', 'voided') OR ch."to" = 'refunded')
GROUP BY c.merchant_id, c.currency
"""  # noqa: S608 - made only of our own constants
COUNT_DELIVERIES = f"""
SELECT merchant_id, count(*) FILTER (WHERE is_delivered) AS delivered_count,
    count(*) FILTER (WHERE NOT is_delivered) AS failed_count,
    array_agg({ANSWER_MS.sql.format(value="duration_ms")}) FILTER (WHERE duration_ms IS NOT NULL) AS durations
FROM webhooks_attempt
WHERE started_at >= %(begins_at)s AND started_at < %(ends_at)s AND is_delivered IS NOT NULL
GROUP BY merchant_id
"""  # noqa: S608 - made only of our own constants

# The sums for the home page, from the counted hours. They are plain SQL, because the ORM takes longer to build
# sixty sums than the database takes to add up the hours of two months.
SUM_PAYMENTS = """
SELECT width_bucket(hour, %(begins)s), currency, sum(captured_count), sum(captured_amount)::bigint,
    sum(cancelled_count), sum(lapsed_count), sum(refunded_count), sum(refunded_amount)::bigint
FROM portal_paymenthour WHERE merchant_id = %(merchant)s AND hour >= %(since)s GROUP BY 1, 2
"""
SUM_DELIVERIES = """
SELECT width_bucket(hour, %(begins)s), sum(delivered_count), sum(failed_count)
FROM portal_deliveryhour WHERE merchant_id = %(merchant)s AND hour >= %(since)s GROUP BY 1
"""


def _sum_slots(column: str) -> str:
    return ", ".join(f"sum({column}[{slot}])" for slot in range(1, SLOTS + 1))


SUM_HOLD_TIMES = f"""
SELECT hour >= %(begin)s, {_sum_slots("hold_times")} FROM portal_paymenthour
WHERE merchant_id = %(merchant)s AND hour >= %(since)s AND currency = %(currency)s GROUP BY 1
"""  # noqa: S608 - made only of our own constants


def compose_answered_attempts(event_type: EventType, *, latest: int, limit: int, is_resent: bool) -> str:
    """Return SQL that finds at most `limit` delivered attempts (2xx) among the `latest` attempts.

    The event type is a part of the SQL text, because a generic plan would not use the index for rare types.
    """
    resent = "AND number > 1 AND actor <> ''" if is_resent else ""
    return f"""
SELECT id FROM (
    SELECT id, is_delivered, number, actor FROM webhooks_attempt
    WHERE merchant_id = %(merchant)s AND event_type = '{event_type.value}'
    ORDER BY started_at DESC, id DESC LIMIT {latest}
) latest WHERE is_delivered {resent} LIMIT {limit}
"""  # noqa: S608 - made only of our own constants


# The lock waits for a transaction that stops the secret or revokes the key. PostgreSQL then checks the condition again.
LOCK_SECRET = """
SELECT FROM portal_apiclient
WHERE id = %s AND revoked_at IS NULL AND %s IN (client_secret, previous_secret) FOR SHARE
"""
