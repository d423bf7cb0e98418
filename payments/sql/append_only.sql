-- Rows that are never changed or deleted, except that the sandbox's clock moves their times.

CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

-- Return whether advance_history() is moving the times of this checkout. Production does not have that function.
CREATE FUNCTION is_advanced(checkout_uuid uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT to_regprocedure('public.advance_history(uuid, integer)') IS NOT NULL
        AND coalesce(current_setting('checkout.advanced', true) = checkout_uuid::text, false)
$$;

CREATE TRIGGER merchants_stay BEFORE DELETE ON payments_merchant FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER payments_stay BEFORE DELETE ON payments_payment FOR EACH ROW EXECUTE FUNCTION append_only();

CREATE TRIGGER movements_stay BEFORE DELETE ON payments_movement FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER movements_are_append_only BEFORE UPDATE ON payments_movement FOR EACH ROW
    WHEN (NOT is_advanced(OLD.checkout_uuid)
        OR to_jsonb(OLD) - '{occurred_at,recorded_at}'::text[]
            IS DISTINCT FROM to_jsonb(NEW) - '{occurred_at,recorded_at}'::text[])
    EXECUTE FUNCTION append_only();

CREATE TRIGGER bookings_stay BEFORE DELETE ON payments_booking FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER bookings_are_append_only BEFORE UPDATE ON payments_booking FOR EACH ROW
    WHEN (NOT is_advanced(OLD.checkout_uuid)
        OR to_jsonb(OLD) - 'created_at' IS DISTINCT FROM to_jsonb(NEW) - 'created_at')
    EXECUTE FUNCTION append_only();

CREATE TRIGGER postings_are_append_only BEFORE UPDATE OR DELETE ON payments_posting
    FOR EACH ROW EXECUTE FUNCTION append_only();
