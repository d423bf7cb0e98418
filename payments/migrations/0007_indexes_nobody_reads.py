"""Indexes whose columns another one begins with, or that no query reads: each was written whenever its row was."""

import django.db.models.deletion
from django.db import migrations, models

DROPPED = (
    ("payments_payment_merchant_id_2ca42133", "payments_payment (merchant_id)"),
    ("payments_posting_merchant_id_c20f5fa7", "payments_posting (merchant_id)"),
    ("payments_pa_merchan_7b4c90_idx", "payments_payment (merchant_id, subject)"),
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("payments", "0006_database_mark"),
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
                    "payment",
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="payments.merchant"
                    ),
                ),
                migrations.AlterField(
                    "posting",
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="payments.merchant"
                    ),
                ),
                migrations.RemoveIndex("payment", "payments_pa_merchan_7b4c90_idx"),
            ]
        ),
    ]
