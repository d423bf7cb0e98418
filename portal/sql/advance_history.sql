-- Only in the sandbox: when time is advanced for a checkout, the times of its append-only rows move into the past. The
-- tables' owner keeps this function, and nothing else of a row changes. Returns how many lines of history it moved.

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
