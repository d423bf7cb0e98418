-- Events, deliveries and attempts. They are partitioned by the time in their ids, so that old rows are dropped with their
-- partition. Pending deliveries have their own partition, so the queue stays small. A new partition is a copy of the default
-- one, with its indexes. There are no foreign keys, because a new or dropped partition would lock the tables that they refer
-- to.

CREATE TABLE webhooks_event (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL,
    type varchar(40) NOT NULL,
    checkout_uuid uuid,
    body bytea NOT NULL,
    created_at timestamptz NOT NULL,
    valid_until timestamptz,
    superseded_at timestamptz,
    body_deleted_at timestamptz,
    request_id varchar(64) NOT NULL,
    traceparent varchar(55) NOT NULL DEFAULT '',
    written_at timestamptz NOT NULL DEFAULT clock_timestamp()
) PARTITION BY RANGE (id);
CREATE INDEX event_written ON webhooks_event (merchant_id, written_at, id);
CREATE INDEX event_written_seldom ON webhooks_event (merchant_id, type, written_at, id)
    WHERE type <> 'checkout.authorized';
CREATE INDEX event_of_checkout ON webhooks_event (checkout_uuid);
CREATE INDEX event_personal ON webhooks_event (created_at)
    WHERE body_deleted_at IS NULL AND type = 'marketing.opted_in';
CREATE TABLE webhooks_event_default PARTITION OF webhooks_event DEFAULT;

CREATE TABLE webhooks_delivery (
    id uuid NOT NULL,
    merchant_id uuid NOT NULL,
    event_id uuid NOT NULL,
    subscription_id uuid NOT NULL,
    event_type varchar(40) NOT NULL,
    status varchar(10) NOT NULL,
    is_urgent boolean NOT NULL,
    attempt_count integer NOT NULL CHECK (attempt_count >= 0),
    resent_count integer NOT NULL CHECK (resent_count >= 0),
    resent_by varchar(60) NOT NULL,
    returns_at timestamptz,
    valid_until timestamptz,
    superseded_at timestamptz,
    next_attempt_at timestamptz,
    lease_until timestamptz,
    lease_token uuid,
    ended_at timestamptz,
    closed_at timestamptz,
    CONSTRAINT a_pending_delivery_has_a_next_attempt CHECK (
        (status = 'pending' AND ended_at IS NULL
            AND (next_attempt_at IS NOT NULL OR event_type = 'marketing.opted_in'))
        OR (status <> 'pending' AND ended_at IS NOT NULL AND next_attempt_at IS NULL)),
    CONSTRAINT a_delivery_lies_with_its_event CHECK (
        substring(uuid_send(id) FROM 1 FOR 6) = substring(uuid_send(event_id) FROM 1 FOR 6))
) PARTITION BY LIST (status);

CREATE TABLE webhooks_delivery_pending PARTITION OF webhooks_delivery (PRIMARY KEY (id)) FOR VALUES IN ('pending')
    WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.1);
CREATE UNIQUE INDEX an_event_goes_once_to_a_subscription ON webhooks_delivery_pending (event_id, subscription_id);
CREATE INDEX delivery_waiting ON webhooks_delivery_pending (subscription_id, is_urgent, next_attempt_at, id)
    WHERE lease_token IS NULL;
CREATE INDEX delivery_urgent ON webhooks_delivery_pending (next_attempt_at) WHERE is_urgent AND lease_token IS NULL;
CREATE INDEX delivery_leased ON webhooks_delivery_pending (lease_until) WHERE lease_token IS NOT NULL;

CREATE TABLE webhooks_delivery_ended PARTITION OF webhooks_delivery (PRIMARY KEY (id))
    FOR VALUES IN ('delivered', 'parked', 'superseded') PARTITION BY RANGE (id);
CREATE INDEX delivery_parked ON webhooks_delivery_ended (merchant_id, ended_at) WHERE status = 'parked';
CREATE INDEX delivery_parked_lately ON webhooks_delivery_ended (ended_at) WHERE status = 'parked';
CREATE TABLE webhooks_delivery_ended_default PARTITION OF webhooks_delivery_ended DEFAULT;
CREATE UNIQUE INDEX an_event_went_once_to_a_subscription
    ON webhooks_delivery_ended_default (event_id, subscription_id);

CREATE TABLE webhooks_attempt (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    number integer NOT NULL CHECK (number >= 0),
    event_type varchar(40) NOT NULL,
    actor varchar(60) NOT NULL DEFAULT '',
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    is_delivered boolean,
    http_status smallint CHECK (http_status >= 0),
    error_message varchar(255),
    duration_ms integer CHECK (duration_ms >= 0),
    response_excerpt text NOT NULL,
    CONSTRAINT an_attempt_lies_with_its_delivery CHECK (
        substring(uuid_send(id) FROM 1 FOR 6) = substring(uuid_send(delivery_id) FROM 1 FOR 6))
) PARTITION BY RANGE (id);
CREATE INDEX attempt_listed ON webhooks_attempt (merchant_id, started_at, id);
CREATE INDEX attempt_seldom ON webhooks_attempt (merchant_id, event_type, started_at DESC, id DESC)
    WHERE event_type <> 'checkout.authorized';
-- An attempt that fails has an error. An attempt that succeeds changes no indexed column, and so updates no index.
CREATE INDEX attempt_refused ON webhooks_attempt (merchant_id, started_at DESC, id DESC)
    WHERE error_message IS NOT NULL;
CREATE INDEX attempt_of_hour ON webhooks_attempt USING brin (started_at)
    WITH (autosummarize = on, pages_per_range = 32);
CREATE TABLE webhooks_attempt_default PARTITION OF webhooks_attempt DEFAULT WITH (fillfactor = 60);
CREATE UNIQUE INDEX attempts_of_a_delivery_are_numbered ON webhooks_attempt_default (delivery_id, number);

SELECT make_partition(parent, current_date + day, current_date + day + 1)
FROM unnest('{webhooks_event,webhooks_delivery_ended,webhooks_attempt}'::name[]) parent, generate_series(-1, 8) day;
