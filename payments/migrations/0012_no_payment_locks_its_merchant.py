"""A new payment or posting does not lock its merchant's row, which the orders of a sale all have in common.

A foreign key would, to see that it stays; instead no such row can be deleted, and the proof finds what is nobody’s.
"""

import django.db.models.deletion
from django.db import migrations, models

from payments.migrations._letting_go import let_go, take_back

STAY = """
CREATE TRIGGER merchants_stay BEFORE DELETE ON payments_merchant FOR EACH ROW EXECUTE FUNCTION append_only()
"""
MERCHANT = models.ForeignKey(
    "payments.merchant", on_delete=django.db.models.deletion.PROTECT, db_index=False, db_constraint=False
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("payments", "0011_ascending_indexes")]

    operations = [
        migrations.RunSQL(STAY, "DROP TRIGGER merchants_stay ON payments_merchant"),
        *(
            migrations.SeparateDatabaseAndState(
                [
                    migrations.RunPython(
                        let_go(f"payments_{model}", "merchant_id"),
                        take_back(f"payments_{model}", "merchant_id", "payments_merchant"),
                    )
                ],
                [migrations.AlterField(model, "merchant", MERCHANT)],
            )
            for model in ("payment", "posting")
        ),
    ]
