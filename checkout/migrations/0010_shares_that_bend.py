"""A share that ended unpaid may be asked for again, and the lead may keep one to which a mate has said no."""

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
        ('open', 'cancelled'),{more}
        ('paying', 'open'),
        ('paying', 'paid'),
        ('paid', 'reimbursed'),
        ('paid', 'refunded'),
        ('reimbursed', 'refunded')
    ) THEN RETURN NEW; END IF;
    RAISE EXCEPTION 'a share never goes from % to %', OLD.status, NEW.status
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
"""
MORE = """
        ('declined', 'open'),
        ('declined', 'cancelled'),
        ('cancelled', 'open'),"""


class Migration(migrations.Migration):
    dependencies = [("checkout", "0009_metadata")]
    operations = [migrations.RunSQL(MOVES.replace("{more}", MORE), MOVES.replace("{more}", ""))]
