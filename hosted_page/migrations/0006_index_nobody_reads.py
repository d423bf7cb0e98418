"""An index that no query reads: it was written at every change of its row."""

import django.db.models.deletion
from django.db import migrations, models

DROPPED = (("hosted_page_smsmessage_merchant_id_c9a3b68c", "hosted_page_smsmessage (merchant_id)"),)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("hosted_page", "0005_numbers_encrypted"),
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
                    "smsmessage",
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="payments.merchant"
                    ),
                ),
            ]
        ),
    ]
