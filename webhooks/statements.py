"""SQL statements for webhooks. Most of them are for the delivery queue.

The statements for the queue use the partition with pending deliveries directly. For all other rows, the caller passes
ids or a range of ids, so that PostgreSQL plans only for the partitions that are needed. A delivery is moved to
another partition by DELETE and INSERT. If an UPDATE moved the row, every transaction that waits for its lock would
fail.
"""

# Makes a new UUIDv7 with the same time as the id of the delivery, like clock.new_id_of_same_time.
_ANOTHER_ID = """encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(uuid_send(d.id) FROM 1 FOR 6) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid"""

_REMAINS = "id, merchant_id, event_id, subscription_id, event_type, is_urgent, attempt_count, resent_count, valid_until"
# Stores the rows that `gone` has deleted as ended deliveries. `gone` has the columns in _REMAINS, `status` and
# `ended_at`.
_END = f"""
INSERT INTO webhooks_delivery_ended ({_REMAINS}, status, ended_at, resent_by)
SELECT {_REMAINS}, status, ended_at, '' FROM gone
"""  # noqa: S608 - made only of our own constants
_GONE = ", ".join(f"d.{column}" for column in _REMAINS.split(", "))

# The condition for a delivery with personal data. Until its address is approved, such a delivery normally has no due
# time. If the address was changed just now, the delivery can still have a due time. Claims therefore check the approval
# again.
_PERSONAL = "d.event_type = 'marketing.opted_in'"
# Computes how many attempts can start now at each endpoint in {rows}. `in_flight` is the number of its open attempts.
# `turns` is the number of attempts that the pace limit of the endpoint still allows.
_ROOM = """
busy AS (
    SELECT subscription_id, count(*) AS in_flight FROM webhooks_delivery_pending
    WHERE lease_token IS NOT NULL GROUP BY subscription_id
),
endpoints AS (
    SELECT subscription_id, s.is_approved, coalesce(in_flight, 0) AS in_flight,
        CASE WHEN hung_in_a_row >= %(hung)s THEN %(per_hung)s ELSE %(per_endpoint)s END AS general_cap,
        CASE WHEN hung_in_a_row >= %(hung)s THEN %(per_hung_urgent)s ELSE %(per_endpoint_urgent)s END
            AS urgent_cap,
        floor(%(burst)s - greatest(0, coalesce(extract(epoch FROM paced_until - now), 0)) / %(pace)s) AS turns
    FROM {rows} JOIN webhooks_subscription s ON s.id = subscription_id AND s.ended_at IS NULL
    CROSS JOIN clock LEFT JOIN busy USING (subscription_id) LEFT JOIN webhooks_endpoint USING (subscription_id)
)"""

# A claim consists of two statements in one transaction. LOCK_ENDPOINTS locks endpoints with due deliveries, but not
# more endpoints than there are slots. It skips endpoints that another process has locked, so claims never wait for
# each other. CLAIM sees everything that was committed before these locks were taken, so its counts for these
# endpoints are exact.
#
# The clock is read only once, so that PostgreSQL can use an index for comparisons with `now`. `waiting` reads one
# endpoint after another from an index. For each endpoint, it reads only as many rows as can be sent to it, so a
# backlog does not cost more.
LOCK_ENDPOINTS = f"""
WITH RECURSIVE clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
waiting AS (
    (SELECT subscription_id FROM webhooks_delivery_pending WHERE lease_token IS NULL
     ORDER BY subscription_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.subscription_id FROM webhooks_delivery_pending d
            WHERE d.lease_token IS NULL AND d.subscription_id > waiting.subscription_id
            ORDER BY d.subscription_id LIMIT 1)
    FROM waiting WHERE subscription_id IS NOT NULL
),
{_ROOM.format(rows="waiting")},
looked_at AS (
    SELECT endpoints.*, (
        SELECT d.next_attempt_at FROM webhooks_delivery_pending d
        WHERE d.subscription_id = endpoints.subscription_id AND d.lease_token IS NULL
          AND d.is_urgent AND d.next_attempt_at <= now AND in_flight < urgent_cap
          AND d.superseded_at IS NULL AND (d.valid_until IS NULL OR d.valid_until > now)
        ORDER BY d.next_attempt_at LIMIT 1
    ) AS urgent_since, (
        SELECT d.next_attempt_at FROM webhooks_delivery_pending d
        WHERE d.subscription_id = endpoints.subscription_id AND d.lease_token IS NULL
          AND NOT d.is_urgent AND d.next_attempt_at <= now AND (is_approved OR NOT {_PERSONAL})
          AND least(general_cap - in_flight, turns, %(general_slots)s) > 0
        ORDER BY d.next_attempt_at LIMIT 1
    ) AS general_since
    FROM endpoints, clock
),
due_at AS MATERIALIZED (
    SELECT subscription_id FROM looked_at WHERE urgent_since IS NOT NULL OR general_since IS NOT NULL
    ORDER BY urgent_since IS NULL, in_flight, least(urgent_since, general_since)
),
locked AS MATERIALIZED (
    SELECT subscription_id FROM due_at WHERE pg_try_advisory_xact_lock(%(claiming)s, uuid_hash(subscription_id))
    LIMIT %(slots)s
)
SELECT array_agg(subscription_id), count(*) < least(%(slots)s, (SELECT count(*) FROM due_at)) FROM locked
"""  # noqa: S608 - made only of our own constants
CLAIM = f"""
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
taken AS (SELECT subscription_id FROM unnest(%(endpoints)s::uuid[]) AS ids (subscription_id)),
{_ROOM.format(rows="taken")},
due AS (
    SELECT picked.*, in_flight, general_cap, urgent_cap FROM endpoints, clock, LATERAL (
        (SELECT d.id, d.subscription_id, d.next_attempt_at, true AS urgent FROM webhooks_delivery_pending d
         WHERE d.subscription_id = endpoints.subscription_id AND d.lease_token IS NULL
           AND d.is_urgent AND d.next_attempt_at <= now
           AND d.superseded_at IS NULL AND (d.valid_until IS NULL OR d.valid_until > now)
         ORDER BY d.next_attempt_at, d.id LIMIT greatest(0, urgent_cap - in_flight))
        UNION ALL
        (SELECT d.id, d.subscription_id, d.next_attempt_at, false FROM webhooks_delivery_pending d
         WHERE d.subscription_id = endpoints.subscription_id AND d.lease_token IS NULL
           AND NOT d.is_urgent AND d.next_attempt_at <= now AND (is_approved OR NOT {_PERSONAL})
         ORDER BY d.next_attempt_at, d.id LIMIT greatest(0, least(general_cap - in_flight, turns)))
    ) picked
),
in_turn AS (
    SELECT due.*, in_flight + row_number() OVER (
        PARTITION BY subscription_id ORDER BY urgent DESC, next_attempt_at, id) AS place_at_endpoint
    FROM due
),
fair AS (
    SELECT in_turn.*, row_number() OVER (
        PARTITION BY urgent ORDER BY place_at_endpoint, next_attempt_at, id) AS place
    FROM in_turn
    WHERE place_at_endpoint <= CASE WHEN urgent THEN urgent_cap ELSE general_cap END
),
chosen AS MATERIALIZED (
    SELECT id FROM fair WHERE urgent OR place <= %(general_slots)s
    ORDER BY urgent DESC, place LIMIT %(slots)s
),
unclaimed AS MATERIALIZED (
    SELECT d.id FROM webhooks_delivery_pending d JOIN chosen USING (id)
    WHERE d.lease_token IS NULL FOR NO KEY UPDATE OF d SKIP LOCKED
),
leased AS (
    UPDATE webhooks_delivery_pending d
    SET lease_token = {_ANOTHER_ID}, attempt_count = d.attempt_count + 1,
        resent_count = d.resent_count + (d.resent_by <> '')::int,
        lease_until = clock.now + make_interval(secs => %(lease_seconds)s)
    FROM unclaimed, clock WHERE d.id = unclaimed.id
    RETURNING d.id, d.merchant_id, d.event_id, d.event_type, d.subscription_id, d.lease_token, d.attempt_count,
        d.resent_by, d.is_urgent, clock.now
),
paced AS (
    INSERT INTO webhooks_endpoint AS endpoint (subscription_id, paced_until)
    SELECT subscription_id, now + count(*) * make_interval(secs => %(pace)s)
    FROM leased WHERE NOT is_urgent GROUP BY subscription_id, now ORDER BY subscription_id
    ON CONFLICT (subscription_id) DO UPDATE SET paced_until = EXCLUDED.paced_until
        + greatest(endpoint.paced_until - (SELECT now FROM clock), interval '0')
),
opened AS (
    INSERT INTO webhooks_attempt
        (id, merchant_id, delivery_id, number, event_type, actor, started_at, response_excerpt)
    SELECT lease_token, merchant_id, id, attempt_count, event_type, resent_by, now, '' FROM leased
)
SELECT leased.id, lease_token, attempt_count, now, event_id, event_type, s.url, is_urgent, ARRAY(
    SELECT secret FROM webhooks_signingsecret signing
    WHERE signing.subscription_id = s.id AND (expires_at IS NULL OR expires_at > now)
    ORDER BY expires_at DESC NULLS FIRST LIMIT %(signing)s), leased.merchant_id
FROM leased JOIN webhooks_subscription s ON s.id = leased.subscription_id
"""  # noqa: S608 - made only of our own constants

# Reads the bodies of claimed deliveries by the ids of their events. For a join, PostgreSQL would plan for every
# partition.
READ_BODIES = """
SELECT id, body, checkout_uuid, traceparent FROM webhooks_event WHERE id = ANY(%(events)s::uuid[])
"""

# Ends deliveries that must no longer be sent. The event was superseded during an attempt, or `valid_until` passed
# before the delivery was sent, or the subscription was being ended while the delivery was written. Only urgent
# deliveries have a `valid_until`.
END_POINTLESS = f"""
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
pointless AS MATERIALIZED (
    SELECT d.id, d.superseded_at FROM webhooks_delivery_pending d
    WHERE d.id IN (
        SELECT urgent.id FROM webhooks_delivery_pending urgent
        WHERE urgent.lease_token IS NULL AND urgent.is_urgent
          AND urgent.next_attempt_at <= (SELECT now FROM clock)
          AND (urgent.superseded_at IS NOT NULL OR urgent.valid_until <= (SELECT now FROM clock))
        UNION ALL
        SELECT orphan.id FROM webhooks_subscription s JOIN webhooks_delivery_pending orphan
            ON orphan.subscription_id = s.id AND orphan.lease_token IS NULL
        WHERE s.ended_at IS NOT NULL
    ) AND d.lease_token IS NULL
    ORDER BY d.id LIMIT %(rows)s FOR NO KEY UPDATE OF d SKIP LOCKED
),
gone AS (
    DELETE FROM webhooks_delivery_pending d USING pointless, clock WHERE d.id = pointless.id
    RETURNING {_GONE}, clock.now AS ended_at,
        CASE WHEN pointless.superseded_at IS NULL THEN 'parked' ELSE 'superseded' END AS status
)
{_END}"""  # noqa: S608 - made only of our own constants

# Parks the deliveries that wait for a subscription that has ended.
PARK_WAITING = f"""
WITH gone AS (
    DELETE FROM webhooks_delivery_pending d WHERE d.subscription_id = %(subscription)s AND d.lease_token IS NULL
    RETURNING {_GONE}, %(now)s::timestamptz AS ended_at, 'parked' AS status
)
{_END}"""  # noqa: S608 - made only of our own constants

# Until the address of a subscription is approved, its deliveries of personal data wait without a due time. As in
# every statement, the rows are locked in the order of their ids.
_HELD_OR_RELEASED = """
WITH locked AS MATERIALIZED (
    SELECT d.id FROM webhooks_delivery_pending d
    WHERE d.subscription_id = %(subscription)s AND d.event_type = %(type)s AND d.lease_token IS NULL AND {state}
    ORDER BY d.id FOR NO KEY UPDATE OF d
)
UPDATE webhooks_delivery_pending d SET next_attempt_at = {next} FROM locked WHERE d.id = locked.id
"""
HOLD_PERSONAL = _HELD_OR_RELEASED.format(state="d.next_attempt_at IS NOT NULL", next="NULL")
RELEASE_PERSONAL = _HELD_OR_RELEASED.format(state="d.next_attempt_at IS NULL", next="clock_timestamp()")

# Parks deliveries of personal data that have waited for an approval until the end of the data's retention period.
PARK_HELD = f"""
WITH old AS MATERIALIZED (
    SELECT d.id FROM webhooks_delivery_pending d JOIN webhooks_subscription s ON s.id = d.subscription_id
    WHERE d.id < %(before)s AND d.event_type = %(type)s AND NOT s.is_approved AND d.lease_token IS NULL
    ORDER BY d.id LIMIT %(rows)s FOR NO KEY UPDATE OF d SKIP LOCKED
),
gone AS (
    DELETE FROM webhooks_delivery_pending d USING old WHERE d.id = old.id
    RETURNING {_GONE}, clock_timestamp() AS ended_at, 'parked' AS status
)
{_END}"""  # noqa: S608 - made only of our own constants

# Makes deliveries due that were written without a due time while their address was being approved.
RELEASE_MISSED = """
WITH missed AS MATERIALIZED (
    SELECT d.id FROM webhooks_delivery_pending d JOIN webhooks_subscription s ON s.id = d.subscription_id
    WHERE d.event_type = %(type)s AND d.next_attempt_at IS NULL AND d.lease_token IS NULL AND s.is_approved
    ORDER BY d.id LIMIT %(rows)s FOR NO KEY UPDATE OF d SKIP LOCKED
)
UPDATE webhooks_delivery_pending d SET next_attempt_at = clock_timestamp() FROM missed WHERE d.id = missed.id
"""

# Reads the subscriptions of merchants with new events. The ORM would build the statement again each time.
READ_SUBSCRIPTIONS = """
SELECT merchant_id, id, event_types, has_deliveries, is_approved FROM webhooks_subscription
WHERE ended_at IS NULL AND merchant_id = ANY(%s)
"""
# With this lock, a change to the address or its approval waits until the deliveries are written.
LOCK_SUBSCRIPTIONS = READ_SUBSCRIPTIONS + "ORDER BY id FOR SHARE"

# Deliveries are superseded in two statements, because the second one must see what another transaction wrote while it
# had locked the event. The second statement locks the deliveries before it checks whether they are in flight, so it
# waits for an attempt that is just starting or ending. It marks a delivery in flight as superseded. The process that
# records the attempt reads this mark, even if it has read the event before.
SUPERSEDE_EVENTS = """
UPDATE webhooks_event e SET superseded_at = ended.at
FROM unnest(%(checkouts)s::uuid[], %(moments)s::timestamptz[]) ended(checkout_uuid, at)
WHERE e.checkout_uuid = ended.checkout_uuid AND e.type = %(type)s AND e.superseded_at IS NULL
  AND e.id BETWEEN %(first)s AND %(last)s
"""
SUPERSEDE_DELIVERIES = f"""
WITH over AS MATERIALIZED (
    SELECT e.id, e.superseded_at FROM webhooks_event e
    WHERE e.checkout_uuid = ANY(%(checkouts)s::uuid[]) AND e.type = %(type)s AND e.superseded_at IS NOT NULL
      AND e.id BETWEEN %(first)s AND %(last)s
),
locked AS MATERIALIZED (
    SELECT d.id, d.lease_token, over.superseded_at FROM webhooks_delivery_pending d JOIN over ON over.id = d.event_id
    ORDER BY d.id FOR NO KEY UPDATE OF d
),
marked AS (
    UPDATE webhooks_delivery_pending d SET superseded_at = locked.superseded_at
    FROM locked WHERE d.id = locked.id AND locked.lease_token IS NOT NULL
),
gone AS (
    DELETE FROM webhooks_delivery_pending d USING locked WHERE d.id = locked.id AND locked.lease_token IS NULL
    RETURNING {_GONE}, locked.superseded_at AS ended_at, 'superseded' AS status
)
{_END}"""  # noqa: S608 - made only of our own constants

# Personal data must wait until the address is approved, even if a person sends it again.
_SENT_AGAIN_AT = """CASE WHEN event_type = 'marketing.opted_in' AND NOT %(is_approved)s
    THEN NULL ELSE %(now)s::timestamptz END"""
# Sends the deliveries in `ids` again. The caller has locked them. Ended deliveries return to the queue. `urgent` has
# the ids of the events that are sent as urgent, and `windows` has the `valid_until` of these events.
SEND_AGAIN = f"""
WITH waiting AS (
    UPDATE webhooks_delivery_pending d
    SET subscription_id = %(subscription)s, returns_at = next_attempt_at, next_attempt_at = {_SENT_AGAIN_AT},
        is_urgent = d.event_id = ANY(%(urgent)s::uuid[]), resent_by = %(actor)s
    WHERE d.id = ANY(%(ids)s::uuid[])
),
back AS (DELETE FROM webhooks_delivery_ended d WHERE d.id = ANY(%(ids)s::uuid[]) RETURNING {_GONE})
INSERT INTO webhooks_delivery_pending ({_REMAINS}, status, next_attempt_at, resent_by)
SELECT back.id, merchant_id, event_id, %(subscription)s, event_type, hold.id IS NOT NULL, attempt_count, resent_count,
    hold.valid_until, 'pending', {_SENT_AGAIN_AT}, %(actor)s
FROM back LEFT JOIN unnest(%(urgent)s::uuid[], %(windows)s::timestamptz[]) hold (id, valid_until) ON hold.id = event_id
"""  # noqa: S608 - made only of our own constants

FIND_LOST_LEASES = """
SELECT id, lease_token FROM webhooks_delivery_pending
WHERE lease_token IS NOT NULL AND lease_until < (SELECT clock_timestamp())
ORDER BY lease_until LIMIT %(rows)s
"""

LOCK_LEASED = """
SELECT d.id, d.lease_token, d.subscription_id, d.attempt_count - d.resent_count, d.resent_by <> '',
       d.resent_by <> '' AND EXISTS (
           SELECT 1 FROM webhooks_attempt taken
           WHERE taken.delivery_id = d.id AND taken.is_delivered AND taken.id BETWEEN %(first)s AND %(last)s),
       d.returns_at, a.started_at, clock_timestamp(), d.event_type, e.created_at, e.valid_until,
       coalesce(d.superseded_at, e.superseded_at) IS NOT NULL, s.ended_at IS NOT NULL, a.started_at < s.updated_at,
       s.is_approved
FROM webhooks_delivery_pending d
JOIN webhooks_attempt a ON a.id = d.lease_token AND a.id BETWEEN %(first)s AND %(last)s
JOIN webhooks_event e ON e.id = d.event_id AND e.id BETWEEN %(first)s AND %(last)s
JOIN webhooks_subscription s ON s.id = d.subscription_id
WHERE d.id = ANY(%(ids)s::uuid[]) AND d.lease_token IS NOT NULL
ORDER BY d.id FOR NO KEY UPDATE OF d
"""

# The rows are passed as one JSON text. An array for each column would take the sender ten times as long to encode.
FINISH_ATTEMPTS = f"""
WITH done AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(rows)s::json) AS row (
        delivery_id uuid, status text, next_attempt_at timestamptz, ended_at timestamptz, is_urgent bool,
        attempt_id uuid, attempt_ended_at timestamptz, is_delivered bool, http_status smallint,
        error_message text, duration_ms int, excerpt text)
),
attempts AS (
    UPDATE webhooks_attempt a
    SET ended_at = done.attempt_ended_at, is_delivered = done.is_delivered, http_status = done.http_status,
        error_message = done.error_message, duration_ms = done.duration_ms, response_excerpt = done.excerpt
    FROM done WHERE a.id = done.attempt_id AND a.id = ANY(%(attempts)s::uuid[])
),
waiting AS (
    UPDATE webhooks_delivery_pending d
    SET next_attempt_at = done.next_attempt_at, is_urgent = done.is_urgent, lease_token = NULL, lease_until = NULL,
        resent_by = '', returns_at = NULL
    FROM done WHERE d.id = done.delivery_id AND done.status = 'pending'
),
gone AS (
    DELETE FROM webhooks_delivery_pending d USING done WHERE d.id = done.delivery_id AND done.status <> 'pending'
    RETURNING {_GONE.replace("d.is_urgent", "done.is_urgent")}, done.ended_at, done.status
)
{_END}"""  # noqa: S608 - made only of our own constants

# Updates the health of endpoints after a batch of attempts. The rows are always in the same order, so that two
# workers cannot cause a deadlock.
SAVE_ENDPOINT_HEALTH = """
INSERT INTO webhooks_endpoint AS endpoint
    (subscription_id, last_success_at, last_failure_at, last_error, failing_since, hung_in_a_row)
SELECT * FROM json_to_recordset(%(rows)s::json) AS seen (
    subscription_id uuid, last_success_at timestamptz, last_failure_at timestamptz, last_error text,
    failing_since timestamptz, hung_in_a_row int)
ORDER BY subscription_id
ON CONFLICT (subscription_id) DO UPDATE SET
    last_success_at = greatest(endpoint.last_success_at, EXCLUDED.last_success_at),
    last_failure_at = greatest(endpoint.last_failure_at, EXCLUDED.last_failure_at),
    last_error = CASE WHEN EXCLUDED.last_failure_at >= coalesce(endpoint.last_failure_at, '-infinity')
        THEN EXCLUDED.last_error ELSE endpoint.last_error END,
    failing_since = CASE
        WHEN EXCLUDED.last_success_at >= coalesce(endpoint.last_success_at, '-infinity')
            THEN EXCLUDED.failing_since
        WHEN EXCLUDED.failing_since > coalesce(endpoint.last_success_at, '-infinity')
            THEN coalesce(endpoint.failing_since, EXCLUDED.failing_since)
        ELSE endpoint.failing_since END,
    hung_in_a_row = CASE WHEN EXCLUDED.hung_in_a_row = 0 THEN 0
        ELSE endpoint.hung_in_a_row + EXCLUDED.hung_in_a_row END
"""

# The ORM would build a different statement for each number of events. This would cost more than reading the rows.
READ_STATUSES = """
SELECT event_id, status FROM webhooks_delivery WHERE event_id = ANY(%s) AND id BETWEEN %s AND %s
"""

# Computes statistics about an endpoint's latest attempts, without failures on our side. A merchant has one endpoint
# at a time. The endpoint of an attempt is therefore looked up only if the merchant has had another endpoint since the
# time `since`.
SUMMARIZE_ATTEMPTS = """
SELECT count(*), count(*) FILTER (WHERE is_delivered),
       percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ms),
       percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms),
       min(ended_at) FILTER (WHERE is_delivered AND ended_at > %(failed)s::timestamptz)
FROM (
    SELECT a.is_delivered, a.duration_ms, a.ended_at
    FROM webhooks_attempt a
    WHERE a.merchant_id = %(merchant)s AND a.started_at > %(since)s AND a.ended_at IS NOT NULL
      AND a.id BETWEEN %(first)s AND %(last)s AND coalesce(a.error_message, '') <> ALL(%(not_its_own)s::text[])
      AND (
        NOT EXISTS (SELECT FROM webhooks_subscription s
                    WHERE s.merchant_id = %(merchant)s AND s.id <> %(subscription)s
                      AND (s.ended_at IS NULL OR s.ended_at > %(since)s))
        OR EXISTS (SELECT FROM webhooks_delivery d WHERE d.id = a.delivery_id
                   AND d.id BETWEEN %(first)s AND %(last)s AND d.subscription_id = %(subscription)s)
      )
    ORDER BY a.started_at DESC, a.id DESC LIMIT %(latest)s
) latest
"""

DELETE_PERSONAL_BODIES = """
WITH old AS MATERIALIZED (
    SELECT e.id FROM webhooks_event e
    WHERE e.type = 'marketing.opted_in' AND e.body_deleted_at IS NULL AND e.created_at < %(before)s
      AND NOT EXISTS (SELECT 1 FROM webhooks_delivery d
                      WHERE d.event_id = e.id AND (d.status = 'pending' OR d.ended_at >= %(before)s))
    ORDER BY e.created_at LIMIT %(rows)s FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE webhooks_event e SET body = '', body_deleted_at = clock_timestamp() FROM old WHERE e.id = old.id
"""
