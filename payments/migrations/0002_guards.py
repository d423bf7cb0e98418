"""What the database itself refuses: a ledger that changes or does not balance. And its patience."""

from django.db import migrations

APPEND_ONLY = """
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER postings_are_append_only BEFORE UPDATE OR DELETE ON payments_posting
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

# Settings of the role, not of a connection: they hold behind a connection pooler too.
PATIENCE = """
DO $$
DECLARE
    scope text := format('ALTER ROLE CURRENT_USER IN DATABASE %I SET ', current_database());
BEGIN
    EXECUTE scope || 'lock_timeout = ''3s''';
    EXECUTE scope || 'statement_timeout = ''15s''';
    EXECUTE scope || 'idle_in_transaction_session_timeout = ''20s''';
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("payments", "0001_initial")]
    operations = [migrations.RunSQL(sql) for sql in (APPEND_ONLY, BALANCED, PATIENCE)]
