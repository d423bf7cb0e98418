"""Order ids are found by their beginning, in any case: by an index in the place of the one that found them whole."""

from django.contrib.postgres.indexes import OpClass
from django.db import migrations, models
from django.db.models import F
from django.db.models.functions import Upper

WHOLE = "checkout_ch_merchan_c9f22b_idx"
FOUND = "checkout_order_ids"


def drop(name: str) -> str:
    return f"DROP INDEX CONCURRENTLY IF EXISTS {name}"


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("checkout", "0008_indexes_that_grow_at_their_end")]

    operations = [
        migrations.RunSQL(
            [
                drop(FOUND),
                f"CREATE INDEX CONCURRENTLY {FOUND} ON checkout_checkout "
                "(merchant_id, upper(merchant_order_id) text_pattern_ops)",
                drop(WHOLE),
            ],
            [
                drop(WHOLE),
                f"CREATE INDEX CONCURRENTLY {WHOLE} ON checkout_checkout (merchant_id, merchant_order_id)",
                drop(FOUND),
            ],
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
        )
    ]
