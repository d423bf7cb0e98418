"""The SQL that generates orders in final states, with all their rows, one chunk at a time.

PostgreSQL generates the rows, because to send a row from Python would take ten times as long. Each id is a
UUIDv7 that contains the row's time. Every chunk is later than the previous chunk, as in a table that has
grown over time.
"""

GOODS = """(VALUES
    (0, 'Standing ticket', 'ticket', 2250, '{"event_id": "E-71", "time_zone": "Europe/London"}'::jsonb),
    (1, 'Stalls, row F', 'ticket', 4500, '{"event_id": "E-71", "time_zone": "Europe/London"}'::jsonb),
    (2, 'Poster', 'merchandise', 1200, NULL),
    (3, 'Booking fee', 'fee', 150, NULL),
    (4, 'Postage', 'shipping', 395, NULL)
) AS goods (number, name, category, price, custom_data)"""

# Returns a UUIDv7 that contains the given time, so that rows of similar times are close together in every
# index.
_ID = """
CREATE OR REPLACE FUNCTION pg_temp.id_of(at timestamptz) RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send((extract(epoch FROM at) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1),
        'hex')::uuid
$$
"""
_SPAN = """
CREATE OR REPLACE FUNCTION pg_temp.span(low float, high float) RETURNS interval LANGUAGE sql VOLATILE AS $$
    SELECT (low + random() * (high - low)) * interval '1 s'
$$
"""
# The times of each order. If an order never reached a state, the time of this state is null. The first
# merchant gets half of all orders, and the other half is divided equally among all merchants.
_MOMENTS = """
CREATE TEMP TABLE moments AS
WITH made AS MATERIALIZED (
    SELECT n, %(begin)s::timestamptz + n * %(step)s::interval AS at, 100 * random() AS luck,
        random() < 0.5 AS lapses, (ARRAY[1, 2, 2, 3, 3, 3, 4, 4, 5, 5])[1 + floor(10 * random())::int] AS lines,
        floor(5 * random())::int AS first_goods, pg_temp.span(20, 300) AS waited, pg_temp.span(1, 60) AS decided,
        pg_temp.span(60, 40000) AS regretted, pg_temp.span(2, 600) AS settling,
        (%(merchants)s::uuid[])[CASE WHEN random() < 0.5 THEN 1
            ELSE 1 + floor(random() * cardinality(%(merchants)s::uuid[]))::int END] AS merchant_id
    FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
), fated AS (
    SELECT *, least(at + %(lifetime)s::interval, %(latest)s) AS payable_until,
        CASE WHEN luck < 60 THEN 'captured' WHEN luck < 80 THEN 'expired' WHEN luck < 92 THEN 'voided'
            ELSE 'refunded' END AS fate
    FROM made
), held AS (
    SELECT *, fate IN ('captured', 'refunded') AS is_taken,
        CASE WHEN fate <> 'expired' THEN least(at + waited, %(latest)s) END AS held_at
    FROM fated
), decided AS (
    SELECT *, held_at + %(hold)s::interval AS capture_before,
        CASE WHEN is_taken THEN held_at + decided END AS captured_at,
        CASE WHEN fate = 'voided' AND lapses THEN held_at + %(hold)s::interval
            WHEN fate = 'voided' THEN held_at + decided END AS voided_at
    FROM held
), regretted AS (
    SELECT *, CASE WHEN fate = 'refunded' THEN least(captured_at + regretted, %(latest)s) END AS refund_at FROM decided
), settled AS (
    SELECT *, refund_at + settling AS settled_at FROM regretted
)
SELECT *, gen_random_uuid() AS random_id,
    pg_temp.id_of(at) AS checkout_id, pg_temp.id_of(held_at) AS payment_id, pg_temp.id_of(captured_at) AS capture_id,
    pg_temp.id_of(refund_at) AS refund_id, pg_temp.id_of(settled_at) AS part_id
FROM settled
"""
_LINES = f"""
CREATE TEMP TABLE lines AS
SELECT m.checkout_id, m.at, position, goods.*,
    CASE category WHEN 'ticket' THEN 1 + floor(4 * random())::int ELSE 1 END AS quantity
FROM moments m, generate_series(0, m.lines - 1) AS position, {GOODS}
WHERE goods.number = (m.first_goods + position) %% 5
"""
_ORDERS = """
CREATE TEMP TABLE orders AS
SELECT m.*, sums.amount, 'A-' || left(replace(random_id::text, '-', ''), 10) AS reference,
    client.id AS client_id, subscription.id AS subscription_id
FROM moments m JOIN (SELECT checkout_id, sum(quantity * price) AS amount FROM lines GROUP BY 1) sums USING (checkout_id)
CROSS JOIN LATERAL (SELECT md5(m.merchant_id::text)::uuid AS id) client
LEFT JOIN webhooks_subscription subscription
    ON subscription.merchant_id = m.merchant_id AND subscription.ended_at IS NULL
ORDER BY m.n
"""
_CHECKOUTS = """
INSERT INTO checkout_checkout (id, merchant_id, merchant_order_id, status, amount, currency, return_url, cancel_url,
    payment_id, created_at, updated_at, payable_until, authorized_at, capture_before, captured_at, voided_at,
    void_reason, cancel_note, expired_at, refunded_amount, last_refund_at)
SELECT checkout_id, merchant_id, reference, fate, amount, 'GBP', 'https://shop.example/thanks',
    'https://shop.example/basket', payment_id, at, coalesce(settled_at, captured_at, voided_at, payable_until),
    payable_until, held_at, capture_before, captured_at, voided_at,
    CASE WHEN voided_at IS NULL THEN '' WHEN lapses THEN 'auth_expired' ELSE 'merchant_cancel' END, '',
    CASE fate WHEN 'expired' THEN payable_until END, CASE fate WHEN 'refunded' THEN amount ELSE 0 END, settled_at
FROM orders ORDER BY n
"""
_BILLS = """
INSERT INTO checkout_bill (checkout_id, lines)
SELECT checkout_id, jsonb_agg(jsonb_build_array(category || '-' || price, name, quantity, price, 'GBP', category,
    custom_data) ORDER BY position)
FROM lines GROUP BY checkout_id ORDER BY min(at)
"""
_PAYMENTS = """
INSERT INTO payments_payment (id, merchant_id, kind, subject, checkout_uuid, amount, currency, status, decline_reason,
    provider_reference, provider_account, card_token, return_url, card_brand, card_last4, card_fingerprint, created_at)
SELECT payment_id, merchant_id, 'order', checkout_id, checkout_id, amount, 'GBP', fate, '', '', '',
    'tok_' || replace(payment_id::text, '-', ''), '', 'Visa', '4242', reference, held_at
FROM orders WHERE held_at IS NOT NULL ORDER BY n
"""
_OPERATIONS = """
INSERT INTO payments_operation (id, payment_id, kind, purpose, amount, state, reference, reason, action_url,
    refund_uuid, attempts, actor, request_id, created_at, ended_at)
SELECT act.id, payment_id, kind, CASE kind WHEN 'refund' THEN 'refund_part' ELSE 'payment' END, amount, 'succeeded',
    act.id, '', '', CASE kind WHEN 'refund' THEN refund_id END, 1, 'pump', '', moment, moment
FROM orders, LATERAL (VALUES
    (pg_temp.id_of(held_at), 'authorize', held_at), (capture_id, 'capture', captured_at),
    (pg_temp.id_of(voided_at), 'void', voided_at), (part_id, 'refund', settled_at)
) AS act (id, kind, moment)
WHERE moment IS NOT NULL ORDER BY n
"""
_MOVEMENTS = """
INSERT INTO payments_movement (id, payment_id, checkout_uuid, kind, amount, reference, operation_id, bearer,
    occurred_at, recorded_at)
SELECT act.id, payment_id, checkout_id, kind, sign * amount, act.id, act.id, 'merchant', moment, moment
FROM orders, LATERAL (
    VALUES (capture_id, 'captured', captured_at, 1), (part_id, 'refunded', settled_at, -1)
) AS act (id, kind, moment, sign)
WHERE moment IS NOT NULL ORDER BY n
"""
_POSTINGS = """
INSERT INTO payments_posting (id, transaction, checkout_uuid, merchant_id, account, amount, currency, created_at)
SELECT pg_temp.id_of(moment), transaction, checkout_id, merchant_id, account, sign * amount, 'GBP', moment
FROM orders, LATERAL (VALUES
    (capture_id, captured_at, 'provider', 1), (capture_id, captured_at, 'merchant', -1),
    (part_id, settled_at, 'provider', -1), (part_id, settled_at, 'merchant', 1)
) AS line (transaction, moment, account, sign)
WHERE moment IS NOT NULL ORDER BY n
"""
_REFUNDS = """
INSERT INTO checkout_refund (id, merchant_id, checkout_id, merchant_refund_ref, amount, status, created_at, settled_at)
SELECT refund_id, merchant_id, checkout_id, 'r-' || refund_id, amount, 'settled', refund_at, settled_at
FROM orders WHERE refund_at IS NOT NULL ORDER BY n
"""
_MOVES = """
CREATE TEMP TABLE moves AS
SELECT n, merchant_id, client_id, checkout_id, origin, target, moment, path, answer
FROM orders, LATERAL (VALUES
    ('', 'created', at, '', 201), ('created', 'authorized', held_at, NULL, NULL),
    ('authorized', 'captured', captured_at, 'capture', 200), ('captured', 'refunding', refund_at, 'refund', 204),
    ('refunding', 'refunded', settled_at, NULL, NULL),
    ('authorized', 'voided', voided_at, CASE WHEN lapses THEN NULL ELSE 'cancel' END, 200),
    ('created', 'expired', CASE fate WHEN 'expired' THEN payable_until END, NULL, NULL)
) AS move (origin, target, moment, path, answer)
WHERE moment IS NOT NULL
"""
_CHANGES = """
INSERT INTO checkout_change (id, checkout_id, origin, "to", actor, request_id, created_at)
SELECT pg_temp.id_of(moment), checkout_id, origin, target,
    CASE WHEN path IS NULL THEN 'pump' ELSE 'client:' || client_id END, '', moment
FROM moves ORDER BY n, moment
"""
_CALLS = """
INSERT INTO checkout_apicall (id, merchant_id, client_uuid, checkout_uuid, method, path, request_id, status, error_code,
    created_at)
SELECT pg_temp.id_of(moment), merchant_id, client_id, checkout_id, 'POST',
    '/api/merchant/v1/checkouts' || CASE path WHEN '' THEN '' ELSE '/' || checkout_id || '/' || path END,
    'req_' || replace(gen_random_uuid()::text, '-', ''), answer, '', moment
FROM moves WHERE path IS NOT NULL AND moment >= %(calls_since)s ORDER BY n, moment
"""
# Each event was delivered at the first attempt, except one event in fifty, which needed two attempts.
_TOLD = """
CREATE TEMP TABLE told AS
SELECT n, pg_temp.id_of(moment) AS id, merchant_id, subscription_id, checkout_id, reference,
    'checkout.' || status AS type, status, moment, valid_until, ended_at, 1 + (random() < 0.02)::int AS attempts
FROM orders, LATERAL (VALUES
    ('authorized', held_at, capture_before, coalesce(captured_at, capture_before)), ('voided', voided_at, NULL, NULL)
) AS event (status, moment, valid_until, ended_at)
WHERE moment >= %(reported_since)s
"""
_EVENTS = """
INSERT INTO webhooks_event (id, merchant_id, type, checkout_uuid, body, created_at, written_at, valid_until,
    superseded_at, request_id)
SELECT id, merchant_id, type, checkout_id, convert_to(jsonb_build_object(
        'id', id, 'type', type, 'api_version', %(api_version)s::text,
        'created_at', to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'data', jsonb_build_object('checkout_uuid', checkout_id, 'merchant_order_id', reference, 'status', status)
    )::text, 'UTF8'), moment, moment, valid_until, ended_at, ''
FROM told ORDER BY n, moment
"""
_DELIVERIES = """
INSERT INTO webhooks_delivery (id, merchant_id, event_id, subscription_id, event_type, status, is_urgent, attempt_count,
    resent_count, resent_by, ended_at)
SELECT id, merchant_id, id, subscription_id, type, 'delivered', type = 'checkout.authorized', attempts, 0, '',
    moment + attempts * interval '6 s'
FROM told WHERE subscription_id IS NOT NULL ORDER BY n, moment
"""
_ATTEMPTS = """
INSERT INTO webhooks_attempt (id, merchant_id, delivery_id, number, event_type, actor, started_at, ended_at,
    is_delivered, http_status, duration_ms, response_excerpt)
SELECT overlay(id::text PLACING number::text FROM 36)::uuid, merchant_id, id, number, type, '',
    moment + number * interval '5 s', moment + number * interval '6 s', number = attempts,
    CASE WHEN number = attempts THEN 200 ELSE 500 END, 20 + random() * 400, ''
FROM told, generate_series(1, attempts) AS number WHERE subscription_id IS NOT NULL ORDER BY n, moment
"""
FUNCTIONS = (_ID, _SPAN)
TOLD = "moments, lines, orders, moves, told"  # the temporary tables of a chunk
CHUNK = (
    *(_MOMENTS, _LINES, _ORDERS, _CHECKOUTS, _BILLS, _PAYMENTS, _OPERATIONS, _MOVEMENTS, _POSTINGS, _REFUNDS),
    *(_MOVES, _CHANGES, _CALLS, _TOLD, _EVENTS, _DELIVERIES, _ATTEMPTS),
)
