"""What the database itself refuses: a ledger that changes or does not balance, a booking that changes."""

from django.db import migrations

APPEND_ONLY = """
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER postings_are_append_only BEFORE UPDATE OR DELETE ON payments_posting
    FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER bookings_are_append_only BEFORE UPDATE OR DELETE ON payments_booking
    FOR EACH ROW EXECUTE FUNCTION append_only();
"""

BALANCED = """
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
"""

NO_GUARDS = """
DROP TRIGGER a_transaction_sums_to_zero ON payments_posting;
DROP TRIGGER bookings_are_append_only ON payments_booking;
DROP TRIGGER postings_are_append_only ON payments_posting;
DROP FUNCTION posting_balances();
DROP FUNCTION append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("payments", "0001_initial")]
    operations = [migrations.RunSQL(APPEND_ONLY + BALANCED, NO_GUARDS)]
