-- Move the times of a checkout's append-only rows into the past, and return the number of its history rows. Only the sandbox
-- has this function: it advances the time of a checkout. It runs with the rights of the tables' owner, and changes no other
-- column.

CREATE FUNCTION advance_history(advanced uuid, seconds integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE touched integer;
BEGIN
    IF seconds NOT BETWEEN 1 AND 864000 THEN
        RAISE EXCEPTION 'time passes by one second to ten days' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM set_config('checkout.advanced', advanced::text, true);
    UPDATE payments_movement SET occurred_at = occurred_at - make_interval(secs => seconds),
        recorded_at = recorded_at - make_interval(secs => seconds)
    WHERE checkout_uuid = advanced;
    UPDATE payments_booking SET created_at = created_at - make_interval(secs => seconds)
    WHERE checkout_uuid = advanced;
    UPDATE portal_checkoutnote SET created_at = created_at - make_interval(secs => seconds)
    WHERE checkout_uuid = advanced;
    UPDATE checkout_change SET created_at = created_at - make_interval(secs => seconds)
    WHERE checkout_id = advanced;
    GET DIAGNOSTICS touched = ROW_COUNT;
    PERFORM set_config('checkout.advanced', '', true);
    RETURN touched;
END $$;
REVOKE ALL ON FUNCTION advance_history(uuid, integer) FROM PUBLIC;
