"""What the database itself refuses: a move that states.ALLOWED does not have, a history that changes."""

from django.db import migrations

MOVES = """
CREATE FUNCTION checkout_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status = 'created' THEN RETURN NEW; END IF;
        RAISE EXCEPTION 'a checkout begins as created, not as %', NEW.status
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (OLD.status, NEW.status) IN (
        ('created', 'authorized'),
        ('created', 'voided'),
        ('created', 'expired'),
        ('authorized', 'captured'),
        ('authorized', 'voided'),
        ('captured', 'refunding'),
        ('refunding', 'refunded'),
        ('refunding', 'captured')
    ) THEN RETURN NEW; END IF;
    RAISE EXCEPTION 'a checkout never goes from % to %', OLD.status, NEW.status
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER checkout_begins BEFORE INSERT ON checkout_checkout
    FOR EACH ROW EXECUTE FUNCTION checkout_moves();
CREATE TRIGGER checkout_moves BEFORE UPDATE OF status ON checkout_checkout
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION checkout_moves();
"""

SHARES = """
CREATE FUNCTION share_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status = 'draft' THEN RETURN NEW; END IF;
        RAISE EXCEPTION 'a share begins as draft, not as %', NEW.status
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (OLD.status, NEW.status) IN (
        ('draft', 'open'),
        ('draft', 'cancelled'),
        ('open', 'paying'),
        ('open', 'declined'),
        ('open', 'expired'),
        ('open', 'cancelled'),
        ('paying', 'open'),
        ('paying', 'paid'),
        ('paid', 'reimbursed'),
        ('paid', 'refunded'),
        ('reimbursed', 'refunded')
    ) THEN RETURN NEW; END IF;
    RAISE EXCEPTION 'a share never goes from % to %', OLD.status, NEW.status
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER share_begins BEFORE INSERT ON checkout_paymentrequest
    FOR EACH ROW EXECUTE FUNCTION share_moves();
CREATE TRIGGER share_moves BEFORE UPDATE OF status ON checkout_paymentrequest
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION share_moves();
"""

HISTORY = """
CREATE TRIGGER changes_are_append_only BEFORE UPDATE OR DELETE ON checkout_change
    FOR EACH ROW EXECUTE FUNCTION append_only();
"""

NO_GUARDS = """
DROP TRIGGER changes_are_append_only ON checkout_change;
DROP TRIGGER share_moves ON checkout_paymentrequest;
DROP TRIGGER share_begins ON checkout_paymentrequest;
DROP FUNCTION share_moves();
DROP TRIGGER checkout_moves ON checkout_checkout;
DROP TRIGGER checkout_begins ON checkout_checkout;
DROP FUNCTION checkout_moves();
"""


class Migration(migrations.Migration):
    dependencies = [("checkout", "0001_initial"), ("payments", "0002_guards")]
    operations = [migrations.RunSQL(MOVES + SHARES + HISTORY, NO_GUARDS)]
