-- API calls. Each partition has the calls of two days, by the time in their ids (config/lib/database/partitions.py).

CREATE TABLE checkout_apicall (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL,
    client_uuid uuid NOT NULL,
    checkout_uuid uuid,
    method varchar(8) NOT NULL,
    path varchar(300) NOT NULL,
    request_id varchar(64) NOT NULL,
    status smallint NOT NULL CHECK (status >= 0),
    error_code varchar(60) NOT NULL,
    created_at timestamptz NOT NULL,
    param varchar(100) NOT NULL DEFAULT '',
    duration_ms integer CHECK (duration_ms >= 0),
    ignored_fields varchar(700) NOT NULL DEFAULT ''
) PARTITION BY RANGE (id);
CREATE INDEX apicall_of_checkout ON checkout_apicall (merchant_id, checkout_uuid, created_at);
CREATE INDEX apicall_listed ON checkout_apicall (merchant_id, created_at, id);
CREATE INDEX apicall_request ON checkout_apicall (merchant_id, request_id);
CREATE TABLE checkout_apicall_default PARTITION OF checkout_apicall DEFAULT;
SELECT make_partition('checkout_apicall', date '1970-01-01' + day, date '1970-01-01' + day + 2)
FROM generate_series((current_date - date '1970-01-01' - 1) / 2 * 2, current_date - date '1970-01-01' + 8, 2) day;
