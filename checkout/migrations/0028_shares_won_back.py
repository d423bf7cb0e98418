"""A share that a lost dispute has closed is owed to the lead again once the dispute is won by an appeal."""

from django.db import migrations

MOVES = """
CREATE OR REPLACE FUNCTION share_moves() RETURNS trigger LANGUAGE plpgsql AS $$
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
        ('declined', 'open'),
        ('declined', 'cancelled'),
        ('cancelled', 'open'),
        ('paying', 'open'),
        ('paying', 'paid'),
        ('paid', 'reimbursed'),
        ('paid', 'refunded'),
        ('reimbursed', 'refunded'){more}
    ) THEN RETURN NEW; END IF;
    RAISE EXCEPTION 'a share never goes from % to %', OLD.status, NEW.status
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
"""
MORE = """,
        ('reimbursed', 'paid'),
        ('refunded', 'paid')"""


class Migration(migrations.Migration):
    dependencies = [("checkout", "0027_no_order_locks_its_lead")]
    operations = [migrations.RunSQL(MOVES.replace("{more}", MORE), MOVES.replace("{more}", ""))]
