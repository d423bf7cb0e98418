"""An order's items in one row, which is written, found and read at once; a trigger keeps it in step from now on.

It writes as the tables' owner: the service that runs meanwhile is granted the table only when all has been migrated.
"""

import django.db.models.deletion
from django.db import migrations, models

FOLLOW = """
CREATE FUNCTION bill_follows() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO checkout_bill (checkout_id, lines)
    SELECT checkout_id, jsonb_agg(jsonb_build_array(
        item_ref, name, quantity, unit_price, currency, category, custom_data) ORDER BY position)
    FROM made GROUP BY checkout_id
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER bill_follows AFTER INSERT ON checkout_item REFERENCING NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION bill_follows();
"""
STAND = """
DROP TRIGGER bill_follows ON checkout_item;
DROP FUNCTION bill_follows();
"""


class Migration(migrations.Migration):
    dependencies = [("checkout", "0020_leads_in_no_index")]

    operations = [
        migrations.CreateModel(
            name="Bill",
            fields=[
                (
                    "checkout",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="checkout.checkout",
                    ),
                ),
                (
                    "lines",
                    models.JSONField(help_text="Of each item its fields, in the order of Item's."),
                ),
            ],
        ),
        migrations.RunSQL(FOLLOW, STAND),
    ]
