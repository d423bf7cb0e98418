-- The ledger balances, and a late posting is dated to a day that is open.

CREATE FUNCTION posting_balances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT sum(amount) FROM payments_posting
        WHERE transaction = NEW.transaction AND currency = NEW.currency) <> 0 THEN
        RAISE EXCEPTION 'the postings of transaction % do not sum to zero', NEW.transaction
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER a_transaction_sums_to_zero AFTER INSERT ON payments_posting
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION posting_balances();

-- The transaction gets its id before it reads `closed_until`. If it reads an older value, its id is below the horizon
-- that the closing reads afterwards, and the sums wait until it has ended. This relies on READ COMMITTED.
-- If the clock ran ahead, `closed_until` can lie in the future.
CREATE FUNCTION posting_goes_into_an_open_day() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    closed timestamptz;
BEGIN
    PERFORM pg_current_xact_id();
    SELECT closed_until INTO closed FROM payments_ledgerclosing;
    IF NEW.created_at < closed THEN
        NEW.created_at := greatest(clock_timestamp(), closed);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER postings_go_into_open_days BEFORE INSERT ON payments_posting
    FOR EACH ROW EXECUTE FUNCTION posting_goes_into_an_open_day();
