"""Indexes whose columns another one begins with, or that no query reads: each was written whenever its row was."""

import django.db.models.deletion
from django.db import migrations, models

DROPPED = (
    ("webhooks_event_merchant_id_29c51e5b", "webhooks_event (merchant_id)"),
    ("webhooks_attempt_merchant_id_89c4a650", "webhooks_attempt (merchant_id)"),
    ("webhooks_attempt_delivery_id_bb1708b1", "webhooks_attempt (delivery_id)"),
    ("webhooks_delivery_event_id_b6f5af91", "webhooks_delivery (event_id)"),
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("webhooks", "0002_traceparent"),
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
                    "event",
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="payments.merchant"
                    ),
                ),
                migrations.AlterField(
                    "attempt",
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="payments.merchant"
                    ),
                ),
                migrations.AlterField(
                    "attempt",
                    "delivery",
                    models.ForeignKey(
                        related_name="attempts",
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="webhooks.delivery",
                    ),
                ),
                migrations.AlterField(
                    "delivery",
                    "event",
                    models.ForeignKey(
                        related_name="deliveries",
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="webhooks.event",
                    ),
                ),
            ]
        ),
    ]
