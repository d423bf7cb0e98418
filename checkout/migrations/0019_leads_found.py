"""Whose an order is, in a table of its own, which is found by the person; a trigger keeps it in step from now on.

It writes as the tables' owner: the service that runs meanwhile is granted the table only when all has been migrated.
"""

import django.db.models.deletion
from django.db import migrations, models

FOLLOW = """
CREATE FUNCTION lead_follows() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF NEW.lead_id IS NULL THEN
        DELETE FROM checkout_lead WHERE checkout_id = NEW.id;
    ELSIF TG_OP = 'INSERT' OR OLD.lead_id IS NULL THEN
        INSERT INTO checkout_lead (checkout_id, customer_id) VALUES (NEW.id, NEW.lead_id);
    ELSE
        INSERT INTO checkout_lead (checkout_id, customer_id) VALUES (NEW.id, NEW.lead_id)
        ON CONFLICT (checkout_id) DO UPDATE SET customer_id = EXCLUDED.customer_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER lead_begins AFTER INSERT ON checkout_checkout
    FOR EACH ROW WHEN (NEW.lead_id IS NOT NULL) EXECUTE FUNCTION lead_follows();
CREATE TRIGGER lead_follows AFTER UPDATE OF lead_id ON checkout_checkout
    FOR EACH ROW WHEN (OLD.lead_id IS DISTINCT FROM NEW.lead_id) EXECUTE FUNCTION lead_follows();
"""
STAND = """
DROP TRIGGER lead_follows ON checkout_checkout;
DROP TRIGGER lead_begins ON checkout_checkout;
DROP FUNCTION lead_follows();
"""


class Migration(migrations.Migration):
    dependencies = [("checkout", "0018_ascending_indexes")]

    operations = [
        migrations.CreateModel(
            name="Lead",
            fields=[
                (
                    "checkout",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="led_by",
                        serialize=False,
                        to="checkout.checkout",
                    ),
                ),
                (
                    "customer",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="led",
                        to="checkout.customer",
                    ),
                ),
            ],
        ),
        migrations.RunSQL(FOLLOW, STAND),
    ]
