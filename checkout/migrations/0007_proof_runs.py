"""How far a proof of everything is, so that one that was stopped goes on from there."""

import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("checkout", "0006_indexes_nobody_reads"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProofRun",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("is_scheduled", models.BooleanField(help_text="Workers take it up by themselves.")),
                (
                    "next_uuid",
                    models.UUIDField(
                        help_text="Checkouts from here on are to be proved; null: none.", null=True
                    ),
                ),
                (
                    "next_month",
                    models.DateField(
                        help_text="So are the ledger's sums of this month and later ones.", null=True
                    ),
                ),
                ("checkout_count", models.BigIntegerField(default=0)),
                ("posting_count", models.BigIntegerField(default=0)),
                ("breach_count", models.BigIntegerField(default=0)),
                ("begun_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("ended_at",),
                        name="one_proof_of_everything_at_a_time",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
    ]
