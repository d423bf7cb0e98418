"""The index of leads leaves out the orders that have none, as all have when they are made."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q

BEFORE = "checkout_checkout_lead_id_2af14090"


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("checkout", "0007_proof_runs")]

    operations = [
        migrations.RunSQL(
            [
                "DROP INDEX CONCURRENTLY IF EXISTS checkout_led",
                "CREATE INDEX CONCURRENTLY checkout_led ON checkout_checkout (lead_id) WHERE lead_id IS NOT NULL",
                f"DROP INDEX CONCURRENTLY IF EXISTS {BEFORE}",
            ],
            [
                f"DROP INDEX CONCURRENTLY IF EXISTS {BEFORE}",
                f"CREATE INDEX CONCURRENTLY {BEFORE} ON checkout_checkout (lead_id)",
                "DROP INDEX CONCURRENTLY IF EXISTS checkout_led",
            ],
            state_operations=[
                migrations.AlterField(
                    "checkout",
                    "lead",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="checkout.customer",
                    ),
                ),
                migrations.AddIndex(
                    "checkout",
                    models.Index(F("lead"), name="checkout_led", condition=Q(("lead__isnull", False))),
                ),
            ],
        )
    ]
