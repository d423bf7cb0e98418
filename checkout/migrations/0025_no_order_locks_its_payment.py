"""An order that is held does not lock its payment's row: none can be deleted, and the proof finds what has none."""

from django.db import migrations, models
from django.db.models.deletion import PROTECT

from payments.migrations._letting_go import let_go, take_back

PAYMENT = models.ForeignKey(
    "payments.payment", on_delete=PROTECT, null=True, blank=True, db_index=False, db_constraint=False
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("checkout", "0024_no_order_locks_its_merchant"),
        ("payments", "0014_no_operation_locks_its_payment"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunPython(
                    let_go("checkout_checkout", "payment_id"),
                    take_back("checkout_checkout", "payment_id", "payments_payment"),
                )
            ],
            [migrations.AlterField("checkout", "payment", PAYMENT)],
        )
    ]
