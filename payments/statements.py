"""SQL statements for payments: the mark of a restored database, operations and postings, and the ledger's sums.

This module must not import a model.
"""

# The identity of this server, as it is stored in payments.models.DatabaseMark. It is plain SQL, because Celery reads
# it before the models are loaded.
_SERVER = """(
    SELECT concat_ws('/', system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8),
        'payments_databasemark'::regclass::oid)
    FROM pg_control_system()
)"""
FIND_MATCHING_DATABASE_MARK = f"SELECT FROM payments_databasemark WHERE server = {_SERVER} AND word = %s"
MARK_DATABASE_AS_OPENED = f"""
INSERT INTO payments_databasemark (id, server, word, opened_at) VALUES (1, {_SERVER}, %s, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET server = excluded.server, word = excluded.word, opened_at = excluded.opened_at,
    repair_since = NULL
"""  # noqa: S608 - only constants
# If an unfinished repair started from an earlier time, that time is kept. The unfinished repair has already added
# entries to the history, so the next repair cannot derive the time from the history.
BEGIN_REPAIR = """
INSERT INTO payments_databasemark (id, server, word, opened_at, repair_since) VALUES (1, '', '', clock_timestamp(), %s)
ON CONFLICT (id) DO UPDATE SET repair_since = least(payments_databasemark.repair_since, excluded.repair_since)
RETURNING repair_since
"""

OPERATION_COLUMNS = (
    *("kind", "purpose", "amount", "state", "reference", "reason", "refund_uuid", "share_uuid", "resends_id"),
    *("attempts", "first_sent_at", "last_sent_at", "next_attempt_at", "lease_token"),
    *("actor", "request_id", "traceparent", "created_at"),
)
# This is plain SQL, because many holds lapse at the same moment. The ORM takes twice as long to save an operation.
INSERT_OPERATIONS = f"""
INSERT INTO payments_operation (id, payment_id, action_url, {", ".join(OPERATION_COLUMNS)})
SELECT new.id, payment.id, '', {", ".join(f"%({name})s" for name in OPERATION_COLUMNS)}
FROM unnest(%(ids)s::uuid[], %(payments)s::uuid[]) AS new (id, payment_id)
JOIN payments_payment payment ON payment.id = new.payment_id
""".replace("%(amount)s", "coalesce(%(amount)s, payment.amount)")  # noqa: S608 - only our own constants

# With MATERIALIZED, PostgreSQL selects the due rows only once. If it selected them again for each row, it would claim
# more rows than `limit`.
_CLAIM_DUE = """
WITH due AS MATERIALIZED (
    SELECT d.id FROM payments_operation d JOIN payments_payment p ON p.id = d.payment_id
    WHERE d.state IN ('planned', 'in_flight', 'needs_action', 'pending', 'unknown')
      AND d.next_attempt_at <= clock_timestamp() AND d.kind = ANY(%(kinds)s) {only}
      AND (d.state <> 'planned' OR NOT EXISTS (
          SELECT 1 FROM payments_operation other
          WHERE other.payment_id = d.payment_id AND other.ended_at IS NULL
            AND (other.is_open AND other.kind <> 'refund'
                 OR (other.state = 'planned' AND other.id < d.id AND other.next_attempt_at <= clock_timestamp()))))
    ORDER BY d.next_attempt_at LIMIT %(limit)s
    FOR NO KEY UPDATE OF d SKIP LOCKED
)
UPDATE payments_operation o
SET state = CASE WHEN o.state = 'planned' THEN 'in_flight' ELSE o.state END,
    attempts = o.attempts + 1,
    lease_token = gen_random_uuid(),
    next_attempt_at = clock_timestamp() + make_interval(secs => %(lease)s)
FROM due
WHERE o.id = due.id
RETURNING o.id, o.lease_token
"""
CLAIM_DUE_OPERATIONS = _CLAIM_DUE.format(only="")
CLAIM_OPERATION_IF_DUE = _CLAIM_DUE.format(only="AND d.id = %(operation)s")

RECORD_SENDING = """
UPDATE payments_operation
SET first_sent_at = coalesce(first_sent_at, clock_timestamp()),
    last_sent_at = greatest(last_sent_at, clock_timestamp() + %(lease)s)
WHERE id = %(id)s AND num_nonnulls(ended_at) = 0 AND lease_token IS NOT DISTINCT FROM %(held_lease)s::uuid
    AND (lease_token IS NULL OR next_attempt_at > clock_timestamp())
    AND (first_sent_at IS NULL OR first_sent_at > clock_timestamp() - %(usable_for)s)
RETURNING first_sent_at, last_sent_at
"""

# Records and posts a movement for the operation in `recorded`, which is an earlier query in the same WITH.
# Afterwards, the provider owes us `incoming` more, and we owe the bearer the same amount more. If the movement is
# already recorded, constraints refuse it. `payments.ledger.posting_parameters` returns the parameters.
_POST_MOVEMENT = """
fact AS (
    INSERT INTO payments_movement (id, payment_id, checkout_uuid, kind, amount, reference, operation_id, bearer,
        occurred_at, recorded_at)
    SELECT %(movement)s::uuid, p.id, p.checkout_uuid, %(moved_as)s, %(incoming)s::bigint, %(fact)s, recorded.id,
        %(bearer)s, clock_timestamp(), clock_timestamp()
    FROM recorded JOIN payments_payment p ON p.id = recorded.payment_id
    WHERE %(incoming)s::bigint <> 0
    RETURNING id, payment_id, checkout_uuid, amount, bearer
),
posted AS (
    INSERT INTO payments_posting (id, transaction, checkout_uuid, merchant_id, account, amount, currency, created_at)
    SELECT line.id, fact.id, fact.checkout_uuid, p.merchant_id, line.account, line.amount, p.currency,
        clock_timestamp()
    FROM fact JOIN payments_payment p ON p.id = fact.payment_id, LATERAL (
        VALUES (%(provider_line)s::uuid, 'provider', fact.amount),
            (%(bearer_line)s::uuid, fact.bearer, -fact.amount)
    ) AS line (id, account, amount)
)
"""
PAYMENT_OUTCOME_COLUMNS = ("status", "decline_reason", "card_brand", "card_last4", "card_fingerprint")
# This part of a statement updates the payment and posts the movement of the operation that `recorded` has written.
_UPDATE_PAYMENT_AND_POST = f"""
moved AS (
    UPDATE payments_payment payment
    SET {", ".join(f"{name} = coalesce(%({name})s, {name})" for name in PAYMENT_OUTCOME_COLUMNS)}
    FROM recorded
    WHERE payment.id = recorded.payment_id AND num_nonnulls(%(status)s::text, %(card_brand)s::text) > 0
),
{_POST_MOVEMENT}
SELECT FROM recorded
"""  # noqa: S608 - only our own constants
# This is plain SQL, because the ORM would build the statement again for each provider call. `num_nonnulls` replaces the
# condition `ended_at IS NULL`. With that condition, and with table statistics from a quiet hour, PostgreSQL would read
# all operations that have not ended, instead of searching by id.
RECORD_OUTCOME = f"""
WITH recorded AS (
    UPDATE payments_operation
    SET state = %(state)s, reference = %(reference)s, reason = %(reason)s, action_url = %(action_url)s,
        lease_token = %(lease_token)s, ended_at = %(ended_at)s, next_attempt_at = %(next_attempt_at)s
    WHERE id = %(id)s AND num_nonnulls(ended_at) = 0
        AND (%(state)s <> 'unknown' OR lease_token IS NOT DISTINCT FROM %(held_lease)s::uuid)
    RETURNING id, payment_id
),
{_UPDATE_PAYMENT_AND_POST}"""  # noqa: S608 - only our own constants
RECORD_LATE_SUCCESS = f"""
WITH recorded AS (
    UPDATE payments_operation SET state = %(state)s, reference = %(reference)s, reason = '', ended_at = %(ended_at)s
    WHERE id = %(id)s
    RETURNING id, payment_id
),
{_UPDATE_PAYMENT_AND_POST}"""  # noqa: S608 - only our own constants

# If the horizon is higher than all transaction ids of this server, it comes from a different server, whose dump was
# restored here. The horizon is then set again.
SET_HORIZON_OF_CLOSED_DAYS = """
UPDATE payments_ledgerclosing SET horizon = pg_snapshot_xmax(pg_current_snapshot())::text::bigint
WHERE horizon IS NULL OR horizon > pg_snapshot_xmax(pg_current_snapshot())::text::bigint
"""
CHECK_CLOSED_DAYS_ARE_SETTLED = (
    "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= horizon FROM payments_ledgerclosing"
)
# The postings to one account of a merchant in a period are one range in an index. The index includes all columns that
# are needed here.
_POSTINGS_OF_PERIOD = """
SELECT m.id AS merchant_id, accounts.account, p.currency, p.created_at, p.amount
FROM payments_ledgerclosing c, payments_merchant m, unnest(%(accounts)s::text[]) AS accounts (account), LATERAL (
    SELECT currency, created_at, amount FROM payments_posting
    WHERE merchant_id = m.id AND account = accounts.account AND created_at >= {begin} AND created_at < {end}
) p
"""
REMOVE_TIME_LIMIT = "SET LOCAL statement_timeout = 0"
SUM_CLOSED_DAYS = f"""
WITH over AS (
    DELETE FROM payments_ledgersum s USING payments_ledgerclosing c
    WHERE s."end" = s.begin + 1 AND s.begin < date_trunc('month', c.closed_until AT TIME ZONE 'UTC')::date
    RETURNING s.merchant_id, s.account, s.currency, s.begin AS day, s.amount
), fresh AS (
    {_POSTINGS_OF_PERIOD.format(begin="coalesce(c.summed_until, '-infinity')", end="c.closed_until")}
), all_days AS (
    SELECT * FROM over
    UNION ALL
    SELECT merchant_id, account, currency, (created_at AT TIME ZONE 'UTC')::date, amount FROM fresh
), spans AS (
    SELECT all_days.*, day < date_trunc('month', c.closed_until AT TIME ZONE 'UTC')::date AS is_over,
        date_trunc('month', day)::date AS month
    FROM all_days, payments_ledgerclosing c
)
INSERT INTO payments_ledgersum (id, merchant_id, account, currency, begin, "end", amount)
SELECT gen_random_uuid(), merchant_id, account, currency, CASE WHEN is_over THEN month ELSE day END,
    CASE WHEN is_over THEN (month + interval '1 month')::date ELSE day + 1 END, sum(amount)::bigint
FROM spans GROUP BY merchant_id, account, currency, 5, 6
"""  # noqa: S608 - only our own constants

READ_SUMMED_UNTIL = "SELECT coalesce(max(summed_until), '-infinity')::text FROM payments_ledgerclosing"
# `known` is the result of READ_SUMMED_UNTIL. With this value, PostgreSQL can estimate that only few postings are
# later. `summed_until` is read again in the same snapshot as the sums, so that each posting counts exactly once.
READ_BALANCES = """
SELECT account, currency, sum(amount)::bigint FROM (
    SELECT account, currency, amount FROM payments_ledgersum
    WHERE merchant_id = %(merchant)s AND account = ANY(%(accounts)s)
    UNION ALL
    SELECT account, currency, amount FROM payments_posting
    WHERE merchant_id = %(merchant)s AND account = ANY(%(accounts)s) AND created_at >= %(known)s::timestamptz
      AND created_at >= coalesce((SELECT summed_until FROM payments_ledgerclosing), '-infinity')
) lines GROUP BY account, currency ORDER BY account, currency
"""
READ_FIRST_DAY_OF_LEDGER = """
SELECT least(
    (SELECT min(begin) FROM payments_ledgersum),
    (SELECT min(first.created_at AT TIME ZONE 'UTC')::date
     FROM payments_merchant m, unnest(%(accounts)s::text[]) AS accounts (account), LATERAL (
        SELECT created_at FROM payments_posting WHERE merchant_id = m.id AND account = accounts.account
        ORDER BY created_at, id LIMIT 1) first)
) FROM payments_ledgerclosing WHERE summed_until IS NOT NULL
"""
READ_LAST_DAY_OF_LEDGER = """
SELECT greatest(clock_timestamp(), max(summed_until) - interval '1 day')::date FROM payments_ledgerclosing
"""
FIND_MERCHANTS_WITH_WRONG_SUMS = f"""
SELECT DISTINCT merchant_id FROM (
    SELECT merchant_id, account, currency, sum(amount) FROM (
        SELECT merchant_id, account, currency, amount FROM payments_ledgersum
        WHERE begin >= %(begin)s AND begin < %(end)s
        UNION ALL
        SELECT merchant_id, account, currency, -amount FROM ({
    _POSTINGS_OF_PERIOD.format(
        begin="(%(begin)s::timestamp AT TIME ZONE 'UTC')",
        end="least(%(end)s::timestamp AT TIME ZONE 'UTC', c.summed_until)",
    )
}) posted
    ) lines GROUP BY merchant_id, account, currency HAVING sum(amount) <> 0
) differing
"""  # noqa: S608 - only our own constants
