"""The SQL of webhooks/delivery.py: each statement takes a batch."""

# One query string: PostgreSQL runs it as one transaction of its own, so the lock that makes the count of each
# endpoint's attempts exact never waits for a client. `now` is a row, read once, so that the index serves it.
CLAIM = """
SELECT pg_advisory_xact_lock(%(claiming)s);
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
busy AS (
    SELECT subscription_id, count(*) AS in_flight FROM webhooks_delivery
    WHERE lease_token IS NOT NULL GROUP BY subscription_id
),
due AS (
    SELECT d.id, d.subscription_id, d.next_attempt_at, e.type = %(urgent)s AS urgent
    FROM webhooks_delivery d
    JOIN webhooks_event e ON e.id = d.event_id
    JOIN webhooks_subscription s ON s.id = d.subscription_id
    WHERE d.status = 'pending' AND d.lease_token IS NULL AND d.next_attempt_at <= (SELECT now FROM clock)
      AND s.ended_at IS NULL AND e.superseded_at IS NULL
      AND (e.valid_until IS NULL OR e.valid_until > (SELECT now FROM clock))
),
in_turn AS (
    SELECT due.*, coalesce(busy.in_flight, 0) + row_number() OVER (
        PARTITION BY subscription_id ORDER BY urgent DESC, next_attempt_at, id) AS place_at_endpoint
    FROM due LEFT JOIN busy USING (subscription_id)
),
fair AS (
    SELECT in_turn.*, row_number() OVER (PARTITION BY urgent ORDER BY next_attempt_at, id) AS place
    FROM in_turn
    WHERE place_at_endpoint <= CASE WHEN urgent THEN %(per_endpoint_urgent)s ELSE %(per_endpoint)s END
),
chosen AS MATERIALIZED (
    SELECT id FROM fair WHERE urgent OR place <= %(general_slots)s
    ORDER BY urgent DESC, next_attempt_at, id LIMIT %(slots)s
),
locked AS MATERIALIZED (
    SELECT d.id FROM webhooks_delivery d JOIN chosen USING (id)
    WHERE d.status = 'pending' AND d.lease_token IS NULL
    FOR UPDATE OF d SKIP LOCKED
),
leased AS (
    UPDATE webhooks_delivery d
    SET lease_token = gen_random_uuid(), attempt_count = d.attempt_count + 1,
        lease_until = clock.now + make_interval(secs => %(lease_seconds)s)
    FROM locked, clock WHERE d.id = locked.id
    RETURNING d.id, d.merchant_id, d.event_id, d.subscription_id, d.lease_token, d.attempt_count, clock.now
),
opened AS (
    INSERT INTO webhooks_attempt (id, merchant_id, delivery_id, number, started_at, response_excerpt)
    SELECT ids.id, merchant_id, leased.id, attempt_count, now, ''
    FROM (SELECT *, row_number() OVER () AS place FROM leased) leased
    JOIN unnest(%(attempt_ids)s::uuid[]) WITH ORDINALITY AS ids (id, place) USING (place)
)
SELECT leased.id, lease_token, attempt_count, now, e.id, e.type, e.body, s.url, ARRAY(
    SELECT secret FROM webhooks_signingsecret signing
    WHERE signing.subscription_id = s.id AND (expires_at IS NULL OR expires_at > now)
    ORDER BY expires_at DESC NULLS FIRST LIMIT 2)
FROM leased
JOIN webhooks_event e ON e.id = leased.event_id
JOIN webhooks_subscription s ON s.id = leased.subscription_id
"""

END_POINTLESS = """
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
pointless AS MATERIALIZED (
    SELECT d.id, e.superseded_at FROM webhooks_delivery d
    JOIN webhooks_event e ON e.id = d.event_id
    JOIN webhooks_subscription s ON s.id = d.subscription_id
    WHERE d.status = 'pending' AND d.lease_token IS NULL AND d.next_attempt_at <= (SELECT now FROM clock)
      AND (e.superseded_at IS NOT NULL OR s.ended_at IS NOT NULL OR e.valid_until <= (SELECT now FROM clock))
    ORDER BY d.id LIMIT %(rows)s FOR UPDATE OF d SKIP LOCKED
)
UPDATE webhooks_delivery d
SET status = CASE WHEN superseded_at IS NULL THEN 'parked' ELSE 'superseded' END,
    next_attempt_at = NULL, ended_at = clock.now
FROM pointless, clock WHERE d.id = pointless.id
"""

LOST_LEASES = """
SELECT id, lease_token FROM webhooks_delivery
WHERE lease_token IS NOT NULL AND lease_until < (SELECT clock_timestamp())
ORDER BY lease_until LIMIT %(rows)s
"""

LOCK_LEASED = """
SELECT d.id, d.lease_token, d.attempt_count, a.id, a.started_at, clock_timestamp(),
       e.type, e.created_at, e.valid_until, e.superseded_at IS NOT NULL, s.ended_at IS NOT NULL
FROM webhooks_delivery d
JOIN webhooks_attempt a ON a.delivery_id = d.id AND a.number = d.attempt_count
JOIN webhooks_event e ON e.id = d.event_id
JOIN webhooks_subscription s ON s.id = d.subscription_id
WHERE d.id = ANY(%(ids)s::uuid[]) AND d.lease_token IS NOT NULL
ORDER BY d.id FOR UPDATE OF d
"""

FINISH_DELIVERIES = """
UPDATE webhooks_delivery d
SET status = done.status, next_attempt_at = done.next_attempt_at, ended_at = done.ended_at,
    lease_token = NULL, lease_until = NULL
FROM unnest(%(ids)s::uuid[], %(statuses)s::text[], %(next_attempts)s::timestamptz[], %(ends)s::timestamptz[])
    AS done (id, status, next_attempt_at, ended_at)
WHERE d.id = done.id
"""

FINISH_ATTEMPTS = """
UPDATE webhooks_attempt a
SET ended_at = done.ended_at, http_status = done.http_status, error_message = done.error_message,
    duration_ms = done.duration_ms, response_excerpt = done.excerpt
FROM unnest(%(ids)s::uuid[], %(ends)s::timestamptz[], %(statuses)s::smallint[], %(errors)s::text[],
            %(durations)s::int[], %(excerpts)s::text[])
    AS done (id, ended_at, http_status, error_message, duration_ms, excerpt)
WHERE a.id = done.id
"""
