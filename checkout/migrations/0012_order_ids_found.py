"""Order ids are found by their beginning, in any case, and a merchant's refunds are listed, newest first.

Each by an index in the place of one that did less.
"""

import django.db.models.deletion
from django.contrib.postgres.indexes import OpClass
from django.db import migrations, models
from django.db.models import F
from django.db.models.functions import Upper

WHOLE, FOUND = "checkout_ch_merchan_c9f22b_idx", "checkout_order_ids"
OF_MERCHANT, LISTED = "checkout_refund_merchant_id_45ac1e14", "refund_listed"


def drop(name: str) -> str:
    return f"DROP INDEX CONCURRENTLY IF EXISTS {name}"


def turn(made: str, on: str, gone: str) -> list[str]:
    """Make an index, then drop the one in whose place it stands."""
    return [drop(made), f"CREATE INDEX CONCURRENTLY {made} ON {on}", drop(gone)]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("checkout", "0011_group_links")]

    operations = [
        migrations.RunSQL(
            turn(FOUND, "checkout_checkout (merchant_id, upper(merchant_order_id) text_pattern_ops)", WHOLE),
            turn(WHOLE, "checkout_checkout (merchant_id, merchant_order_id)", FOUND),
            state_operations=[
                migrations.AddIndex(
                    "checkout",
                    models.Index(
                        F("merchant"),
                        OpClass(Upper("merchant_order_id"), name="text_pattern_ops"),
                        name=FOUND,
                    ),
                ),
                migrations.RemoveIndex("checkout", WHOLE),
            ],
        ),
        migrations.RunSQL(
            turn(LISTED, "checkout_refund (merchant_id, created_at, id)", OF_MERCHANT),
            turn(OF_MERCHANT, "checkout_refund (merchant_id)", LISTED),
            state_operations=[
                migrations.AlterField(
                    "refund",
                    "merchant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="payments.merchant",
                    ),
                ),
                migrations.AddIndex(
                    "refund", models.Index(fields=["merchant", "created_at", "id"], name=LISTED)
                ),
            ],
        ),
    ]
