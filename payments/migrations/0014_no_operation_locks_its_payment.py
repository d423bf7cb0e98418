"""A new operation does not lock its payment's row: none can be deleted, and the proof finds what belongs to none."""

from django.db import migrations, models
from django.db.models.deletion import PROTECT

from payments.migrations._letting_go import let_go, take_back

STAY = """
CREATE OR REPLACE TRIGGER payments_stay BEFORE DELETE ON payments_payment FOR EACH ROW EXECUTE FUNCTION append_only()
"""
PAYMENT = models.ForeignKey(
    "payments.payment", on_delete=PROTECT, related_name="operations", db_constraint=False
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("payments", "0013_index_nobody_reads")]

    operations = [
        migrations.RunSQL(STAY, "DROP TRIGGER payments_stay ON payments_payment"),
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunPython(
                    let_go("payments_operation", "payment_id"),
                    take_back("payments_operation", "payment_id", "payments_payment"),
                )
            ],
            [migrations.AlterField("operation", "payment", PAYMENT)],
        ),
    ]
