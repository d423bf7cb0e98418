"""Indexes by time that rise, so that what is new fills their pages: falling ones split theirs into halves.

The index of leads leaves out the orders that have none, as all have when they are made.
"""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q

# The index that is made, its columns, and the one that goes then.
RISING = (
    ("checkout_listed", "merchant_id, created_at, id", "checkout_ch_merchan_3dd1ea_idx"),
    ("checkout_of_status", "merchant_id, status, created_at, id", "checkout_ch_merchan_8e4d40_idx"),
    ("checkout_changed", "merchant_id, updated_at", "checkout_ch_merchan_837a45_idx"),
)
LED = "lead_id IS NOT NULL"
OF_LEAD = "checkout_checkout_lead_id_2af14090"


def make(name: str, columns: str) -> list[str]:
    return [
        f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
        f"CREATE INDEX CONCURRENTLY {name} ON checkout_checkout ({columns})",
    ]


def drop(name: str) -> str:
    return f"DROP INDEX CONCURRENTLY IF EXISTS {name}"


def turn(name: str, columns: str, falling: str) -> migrations.RunSQL:
    """Make the rising index, then drop the falling one."""
    before = columns.replace("_at", "_at DESC").replace(", id", ", id DESC")
    fields = columns.replace("merchant_id", "merchant").split(", ")
    return migrations.RunSQL(
        [*make(name, columns), drop(falling)],
        [*make(falling, before), drop(name)],
        state_operations=[
            migrations.AddIndex("checkout", models.Index(fields=fields, name=name)),
            migrations.RemoveIndex("checkout", falling),
        ],
    )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("checkout", "0007_proof_runs")]

    operations = [
        *(turn(*index) for index in RISING),
        migrations.RunSQL(
            [
                drop("checkout_led"),
                f"CREATE INDEX CONCURRENTLY checkout_led ON checkout_checkout (lead_id) WHERE {LED}",
                drop(OF_LEAD),
            ],
            [*make(OF_LEAD, "lead_id"), drop("checkout_led")],
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
        ),
    ]
