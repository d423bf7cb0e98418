"""Indexes whose columns another one begins with, or that no query reads: each was written whenever its row was."""

import django.db.models.deletion
from django.db import migrations, models

DROPPED = (
    ("checkout_merchantcustomer_merchant_id_5088ce09", "checkout_merchantcustomer (merchant_id)"),
    ("checkout_checkout_merchant_id_dc590b88", "checkout_checkout (merchant_id)"),
    ("checkout_checkout_payment_id_a19f4575", "checkout_checkout (payment_id)"),
    ("checkout_item_checkout_id_ae9916ff", "checkout_item (checkout_id)"),
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("checkout", "0005_numbers_encrypted"),
        ("payments", "0007_indexes_nobody_reads"),
    ]

    operations = [
        *(
            migrations.RunSQL(
                f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
                f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {columns}",
            )
            for name, columns in DROPPED
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "checkout",
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="payments.merchant"
                    ),
                ),
                migrations.AlterField(
                    "checkout",
                    "payment",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="payments.payment",
                    ),
                ),
                migrations.AlterField(
                    "item",
                    "checkout",
                    models.ForeignKey(
                        related_name="items",
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="checkout.checkout",
                    ),
                ),
                migrations.AlterField(
                    "merchantcustomer",
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="payments.merchant"
                    ),
                ),
            ]
        ),
    ]
