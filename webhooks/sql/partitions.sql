-- Functions that create and drop partitions with the rights of the tables' owner. The service may call them
-- (config/lib/database/partitions.py).

-- Return the lowest UUIDv7 of a moment.
CREATE FUNCTION first_id(moment timestamptz) RETURNS uuid
    LANGUAGE sql IMMUTABLE SET timezone = 'UTC' AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- Create the partition of some days as a copy of the default one. Return false if it exists, or if the default partition has
-- rows of these days, which would have to be moved under a lock.
CREATE FUNCTION make_partition(parent name, starts_on date, ends_on date) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp SET timezone = 'UTC' SET lock_timeout = '300ms' AS $$
DECLARE
    made name := parent || '_' || to_char(starts_on, 'YYYYMMDD');
    rest name := parent || '_default';
    today date := clock_timestamp()::date;
    is_caught boolean;
    options text;
BEGIN
    IF starts_on NOT BETWEEN today - 150 AND today + 15 OR ends_on - starts_on NOT BETWEEN 1 AND 7
        OR NOT EXISTS (
            SELECT FROM pg_partitioned_table
            WHERE partrelid = to_regclass(quote_ident(parent)) AND partdefid = to_regclass(quote_ident(rest)))
    THEN
        RAISE EXCEPTION 'no partition of % is made from % to %', parent, starts_on, ends_on
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('make_partition'));
    IF to_regclass(quote_ident(made)) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE id >= $1 AND id < $2)', rest)
        INTO is_caught USING first_id(starts_on), first_id(ends_on);
    IF is_caught THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', made, rest);
    SELECT array_to_string(reloptions, ', ') INTO options FROM pg_class WHERE oid = to_regclass(quote_ident(rest));
    IF options <> '' THEN
        EXECUTE format('ALTER TABLE %I SET (%s)', made, options);
    END IF;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
        parent, made, first_id(starts_on), first_id(ends_on));
    RETURN true;
END $$;

-- Drop the oldest partition that ends before a moment, and return its name. Keep a partition while one of its deliveries is
-- pending.
CREATE FUNCTION drop_partition(parent name, before timestamptz) RETURNS name
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp SET timezone = 'UTC' SET lock_timeout = '300ms' AS $$
DECLARE
    old name;
BEGIN
    IF before > clock_timestamp() - interval '7 days' THEN
        RAISE EXCEPTION 'nothing of % is dropped that is younger than a week', parent
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT relname INTO old
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    JOIN pg_partitioned_table ON partrelid = inhparent AND partstrat = 'r'
    CROSS JOIN LATERAL regexp_match(
        pg_get_expr(relpartbound, inhrelid), $re$FROM \('([0-9a-f-]+)'\) TO \('([0-9a-f-]+)'\)$re$) AS bounds
    WHERE inhparent = to_regclass(quote_ident(parent)) AND bounds[2]::uuid <= first_id(before)
      AND (parent NOT LIKE 'webhooks%' OR NOT EXISTS (
          SELECT FROM webhooks_delivery_pending d WHERE d.id >= bounds[1]::uuid AND d.id < bounds[2]::uuid))
    ORDER BY bounds[2]::uuid LIMIT 1;
    IF old IS NOT NULL THEN
        EXECUTE format('DROP TABLE %I', old);
    END IF;
    RETURN old;
END $$;

REVOKE ALL ON FUNCTION make_partition(name, date, date), drop_partition(name, timestamptz) FROM PUBLIC;
