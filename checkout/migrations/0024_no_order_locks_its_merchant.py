"""A new order, or a person whom a merchant comes to know, does not lock the merchant's row: payments' 0012."""

import django.db.models.deletion
from django.db import migrations, models

from payments.migrations._letting_go import let_go, take_back

MERCHANT = models.ForeignKey(
    "payments.merchant", on_delete=django.db.models.deletion.PROTECT, db_index=False, db_constraint=False
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("checkout", "0023_items_in_their_bill"),
        ("payments", "0012_no_payment_locks_its_merchant"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunPython(
                    let_go(f"checkout_{model}", "merchant_id"),
                    take_back(f"checkout_{model}", "merchant_id", "payments_merchant"),
                )
            ],
            [migrations.AlterField(model, "merchant", MERCHANT)],
        )
        for model in ("checkout", "merchantcustomer")
    ]
