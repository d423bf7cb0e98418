"""What leads are to be told by text."""

import django.db.models.deletion
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkout", "0012_order_ids_found")]
    operations = [
        migrations.CreateModel(
            name="LeadTold",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("said_no", "a mate said no"),
                            ("all_paid", "all mates have paid"),
                            ("links_end", "the links end in a day"),
                        ],
                        max_length=9,
                    ),
                ),
                (
                    "share_uuid",
                    models.UUIDField(blank=True, help_text="The share that a mate said no to.", null=True),
                ),
                ("due_at", models.DateTimeField()),
                (
                    "ended_at",
                    models.DateTimeField(
                        blank=True, help_text="When it was told, or nobody had to be.", null=True
                    ),
                ),
                (
                    "checkout",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="checkout.checkout",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index("due_at", condition=models.Q(ended_at=None), name="lead_told_due")],
                "constraints": [
                    models.UniqueConstraint(
                        "checkout",
                        "kind",
                        "share_uuid",
                        nulls_distinct=False,
                        name="a_lead_is_told_once",
                    )
                ],
            },
        ),
    ]
