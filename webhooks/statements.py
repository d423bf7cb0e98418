"""The SQL of delivery.py, health.py and retention.py."""

# A UUIDv7 of the moment: random, the milliseconds of `now` before it, its version set.
UUID7 = """encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send((extract(epoch FROM now) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1),
    'hex')::uuid"""

# How much each of the endpoints in {rows} may get now: `in_flight` of it, and `turns`, how many starts its pace leaves.
_ROOM = """
busy AS (
    SELECT subscription_id, count(*) AS in_flight FROM webhooks_delivery
    WHERE lease_token IS NOT NULL GROUP BY subscription_id
),
endpoints AS (
    SELECT subscription_id, coalesce(in_flight, 0) AS in_flight,
        CASE WHEN hung_in_a_row >= %(hung)s THEN %(per_hung)s ELSE %(per_endpoint)s END AS general_cap,
        CASE WHEN hung_in_a_row >= %(hung)s THEN %(per_hung_urgent)s ELSE %(per_endpoint_urgent)s END
            AS urgent_cap,
        floor(%(burst)s - greatest(0, coalesce(extract(epoch FROM paced_until - now), 0)) / %(pace)s) AS turns
    FROM {rows} JOIN webhooks_subscription s ON s.id = subscription_id AND s.ended_at IS NULL
    CROSS JOIN clock LEFT JOIN busy USING (subscription_id) LEFT JOIN webhooks_endpoint USING (subscription_id)
)"""

# A claim is two statements in one transaction.
# LOCK_ENDPOINTS takes the locks of endpoints where something is due, as many as there are slots, and leaves out those
# that another process holds: claims never wait for each other. CLAIM sees what was committed before it had the locks,
# so that its counts of these endpoints are exact.
# `now` is a row, read once, so that the index can be used for it.
# `waiting` hops from endpoint to endpoint through the index, and of each endpoint only as many rows are read as
# it may get: a backlog costs nothing.
LOCK_ENDPOINTS = """
WITH RECURSIVE clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
waiting AS (
    (SELECT subscription_id FROM webhooks_delivery WHERE status = 'pending' AND lease_token IS NULL
     ORDER BY subscription_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.subscription_id FROM webhooks_delivery d
            WHERE d.status = 'pending' AND d.lease_token IS NULL AND d.subscription_id > waiting.subscription_id
            ORDER BY d.subscription_id LIMIT 1)
    FROM waiting WHERE subscription_id IS NOT NULL
),
{room of waiting},
looked_at AS (
    SELECT endpoints.*, (
        SELECT d.next_attempt_at FROM webhooks_delivery d JOIN webhooks_event e ON e.id = d.event_id
        WHERE d.subscription_id = endpoints.subscription_id AND d.status = 'pending'
          AND d.lease_token IS NULL AND d.is_urgent AND d.next_attempt_at <= now AND in_flight < urgent_cap
          AND e.superseded_at IS NULL AND (e.valid_until IS NULL OR e.valid_until > now)
        ORDER BY d.next_attempt_at LIMIT 1
    ) AS urgent_since, (
        SELECT d.next_attempt_at FROM webhooks_delivery d
        WHERE d.subscription_id = endpoints.subscription_id AND d.status = 'pending'
          AND d.lease_token IS NULL AND NOT d.is_urgent AND d.next_attempt_at <= now
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
"""
CLAIM = """
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
taken AS (SELECT subscription_id FROM unnest(%(endpoints)s::uuid[]) AS ids (subscription_id)),
{room of taken},
due AS (
    SELECT picked.*, in_flight, general_cap, urgent_cap FROM endpoints, clock, LATERAL (
        (SELECT d.id, d.subscription_id, d.next_attempt_at, true AS urgent
         FROM webhooks_delivery d JOIN webhooks_event e ON e.id = d.event_id
         WHERE d.subscription_id = endpoints.subscription_id AND d.status = 'pending'
           AND d.lease_token IS NULL AND d.is_urgent AND d.next_attempt_at <= now
           AND e.superseded_at IS NULL AND (e.valid_until IS NULL OR e.valid_until > now)
         ORDER BY d.next_attempt_at, d.id LIMIT greatest(0, urgent_cap - in_flight))
        UNION ALL
        (SELECT d.id, d.subscription_id, d.next_attempt_at, false
         FROM webhooks_delivery d
         WHERE d.subscription_id = endpoints.subscription_id AND d.status = 'pending'
           AND d.lease_token IS NULL AND NOT d.is_urgent AND d.next_attempt_at <= now
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
    SELECT d.id FROM webhooks_delivery d JOIN chosen USING (id)
    WHERE d.status = 'pending' AND d.lease_token IS NULL
    FOR UPDATE OF d SKIP LOCKED
),
leased AS (
    UPDATE webhooks_delivery d
    SET lease_token = gen_random_uuid(), attempt_count = d.attempt_count + 1,
        resent_count = d.resent_count + (d.resent_by <> '')::int,
        lease_until = clock.now + make_interval(secs => %(lease_seconds)s)
    FROM unclaimed, clock WHERE d.id = unclaimed.id
    RETURNING d.id, d.merchant_id, d.event_id, d.subscription_id, d.lease_token, d.attempt_count, d.resent_by,
        d.is_urgent, clock.now
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
    SELECT {attempt_id}, leased.merchant_id, leased.id, attempt_count, e.type, resent_by, now, ''
    FROM leased JOIN webhooks_event e ON e.id = leased.event_id
)
SELECT leased.id, lease_token, attempt_count, now, e.id, e.type, e.body, s.url, is_urgent, ARRAY(
    SELECT secret FROM webhooks_signingsecret signing
    WHERE signing.subscription_id = s.id AND (expires_at IS NULL OR expires_at > now)
    ORDER BY expires_at DESC NULLS FIRST LIMIT %(signing)s), leased.merchant_id, e.checkout_uuid, e.traceparent
FROM leased
JOIN webhooks_event e ON e.id = leased.event_id
JOIN webhooks_subscription s ON s.id = leased.subscription_id
"""
LOCK_ENDPOINTS = LOCK_ENDPOINTS.replace("{room of waiting}", _ROOM.replace("{rows}", "waiting"))
CLAIM = CLAIM.replace("{room of taken}", _ROOM.replace("{rows}", "taken")).replace("{attempt_id}", UUID7)

# What a race has left behind: a delivery whose event was superseded, or whose window ended, before it was due, or
# one that was written while its subscription ended. Only an urgent event can have a window.
END_POINTLESS = """
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
pointless AS MATERIALIZED (
    SELECT d.id, e.superseded_at FROM webhooks_delivery d
    JOIN webhooks_event e ON e.id = d.event_id
    WHERE d.id IN (
        SELECT urgent.id FROM webhooks_delivery urgent JOIN webhooks_event e ON e.id = urgent.event_id
        WHERE urgent.status = 'pending' AND urgent.lease_token IS NULL AND urgent.is_urgent
          AND urgent.next_attempt_at <= (SELECT now FROM clock)
          AND (e.superseded_at IS NOT NULL OR e.valid_until <= (SELECT now FROM clock))
        UNION ALL
        SELECT orphan.id FROM webhooks_subscription s JOIN webhooks_delivery orphan
            ON orphan.subscription_id = s.id AND orphan.status = 'pending' AND orphan.lease_token IS NULL
        WHERE s.ended_at IS NOT NULL
    ) AND d.status = 'pending' AND d.lease_token IS NULL
    ORDER BY d.id LIMIT %(rows)s FOR UPDATE OF d SKIP LOCKED
)
UPDATE webhooks_delivery d
SET status = CASE WHEN superseded_at IS NULL THEN 'parked' ELSE 'superseded' END,
    next_attempt_at = NULL, ended_at = clock.now, resent_by = '', returns_at = NULL
FROM pointless, clock WHERE d.id = pointless.id
"""

LOST_LEASES = """
SELECT id, lease_token FROM webhooks_delivery
WHERE lease_token IS NOT NULL AND lease_until < (SELECT clock_timestamp())
ORDER BY lease_until LIMIT %(rows)s
"""

LOCK_LEASED = """
SELECT d.id, d.lease_token, d.subscription_id, d.attempt_count - d.resent_count, d.resent_by <> '',
       d.resent_by <> '' AND EXISTS (
           SELECT 1 FROM webhooks_attempt taken WHERE taken.delivery_id = d.id AND taken.is_delivered),
       d.returns_at,
       a.id, a.started_at, clock_timestamp(), e.type, e.created_at, e.valid_until,
       e.superseded_at IS NOT NULL, s.ended_at IS NOT NULL
FROM webhooks_delivery d
JOIN webhooks_attempt a ON a.delivery_id = d.id AND a.number = d.attempt_count
JOIN webhooks_event e ON e.id = d.event_id
JOIN webhooks_subscription s ON s.id = d.subscription_id
WHERE d.id = ANY(%(ids)s::uuid[]) AND d.lease_token IS NOT NULL
ORDER BY d.id FOR UPDATE OF d
"""

# The rows come as one JSON text: encoding them costs the sender a tenth of what arrays of each column would.
FINISH = """
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
    FROM done WHERE a.id = done.attempt_id
)
UPDATE webhooks_delivery d
SET status = done.status, next_attempt_at = done.next_attempt_at, ended_at = done.ended_at,
    is_urgent = done.is_urgent, lease_token = NULL, lease_until = NULL, resent_by = '', returns_at = NULL
FROM done WHERE d.id = done.delivery_id
"""

# How each endpoint has behaved in a batch; the rows are in one order, so that two workers never deadlock.
NOTE_BEHAVIOUR = """
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

# Figures of an endpoint's latest attempts, without those that our own worker lost, which say nothing about it.
PICTURE = """
SELECT count(*), count(*) FILTER (WHERE is_delivered),
       percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ms),
       percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms)
FROM (
    SELECT a.is_delivered, a.duration_ms FROM webhooks_attempt a JOIN webhooks_delivery d ON d.id = a.delivery_id
    WHERE a.merchant_id = %(merchant)s AND a.started_at > %(since)s AND a.ended_at IS NOT NULL
      AND d.subscription_id = %(subscription)s AND a.error_message IS DISTINCT FROM 'worker_lost'
    ORDER BY a.started_at DESC, a.id DESC LIMIT %(latest)s
) latest
"""

DELETE_PERSONAL = """
WITH old AS MATERIALIZED (
    SELECT e.id FROM webhooks_event e
    WHERE e.type = 'marketing.opted_in' AND e.body_deleted_at IS NULL AND e.created_at < %(before)s
      AND NOT EXISTS (SELECT 1 FROM webhooks_delivery d
                      WHERE d.event_id = e.id AND (d.status = 'pending' OR d.ended_at >= %(before)s))
    ORDER BY e.created_at LIMIT %(rows)s FOR UPDATE SKIP LOCKED
)
UPDATE webhooks_event e SET body = '', body_deleted_at = clock_timestamp() FROM old WHERE e.id = old.id
"""

# A delivery that is being resent at this moment stays, and its event with it.
DELETE_OLD = """
WITH old AS MATERIALIZED (
    SELECT e.id FROM webhooks_event e
    WHERE e.id < %(first_id)s
      AND NOT EXISTS (SELECT 1 FROM webhooks_delivery d
                      WHERE d.event_id = e.id AND (d.status = 'pending' OR d.ended_at >= %(before)s))
    ORDER BY e.id LIMIT %(rows)s FOR UPDATE SKIP LOCKED
),
ended AS MATERIALIZED (
    SELECT d.id FROM webhooks_delivery d JOIN old ON d.event_id = old.id
    WHERE d.status <> 'pending' FOR UPDATE OF d SKIP LOCKED
),
attempts AS (DELETE FROM webhooks_attempt a USING ended WHERE a.delivery_id = ended.id),
deliveries AS (DELETE FROM webhooks_delivery d USING ended WHERE d.id = ended.id)
DELETE FROM webhooks_event e USING old WHERE e.id = old.id AND NOT EXISTS (
    SELECT FROM webhooks_delivery d WHERE d.event_id = e.id AND d.id NOT IN (SELECT id FROM ended))
"""
