"""New rows come at the end of an index, which is read backwards, and no page there is split in halves for them.

Ended operations are found by an entry for each again: to say which pages hold them was more to write.
"""

from django.db import migrations
from django.db.models import F, Index, Q

CARD = (
    "payments_pa_merchan_301a0c_idx",
    "payment_by_card",
    "payments_payment (merchant_id, card_last4, {at})",
)
MOVED = (
    "posting_movements",
    "posting_moved",
    "payments_posting (merchant_id, account, {at}, {id}) INCLUDE (amount, currency)",
)
DESCENDING, ASCENDING = {"at": "created_at DESC", "id": "id DESC"}, {"at": "created_at", "id": "id"}
ENDED, LATELY = "operation_ended", "operation_ended_lately"
OF_EACH = "payments_operation (ended_at) WHERE ended_at IS NOT NULL"
OF_PAGES = "payments_operation USING brin (ended_at) WITH (autosummarize = on, pages_per_range = 32)"


def turn(made: str, on: str, gone: str) -> list[str]:
    """Make an index, then drop the one in whose place it stands."""
    return [
        f"DROP INDEX CONCURRENTLY IF EXISTS {made}",
        f"CREATE INDEX CONCURRENTLY {made} ON {on}",
        f"DROP INDEX CONCURRENTLY IF EXISTS {gone}",
    ]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("payments", "0011_ended_operations")]

    operations = [
        migrations.RunSQL(
            turn(CARD[1], CARD[2].format(**ASCENDING), CARD[0]),
            turn(CARD[0], CARD[2].format(**DESCENDING), CARD[1]),
            state_operations=[
                migrations.RemoveIndex("payment", CARD[0]),
                migrations.AddIndex(
                    "payment", Index(fields=["merchant", "card_last4", "created_at"], name=CARD[1])
                ),
            ],
        ),
        migrations.RunSQL(
            turn(MOVED[1], MOVED[2].format(**ASCENDING), MOVED[0]),
            turn(MOVED[0], MOVED[2].format(**DESCENDING), MOVED[1]),
            state_operations=[
                migrations.RemoveIndex("posting", MOVED[0]),
                migrations.AddIndex(
                    "posting",
                    Index(
                        fields=["merchant", "account", "created_at", "id"],
                        include=["amount", "currency"],
                        name=MOVED[1],
                    ),
                ),
            ],
        ),
        migrations.RunSQL(
            turn(ENDED, OF_EACH, LATELY),
            turn(LATELY, OF_PAGES, ENDED),
            state_operations=[
                migrations.RemoveIndex("operation", LATELY),
                migrations.AddIndex(
                    "operation", Index(F("ended_at"), name=ENDED, condition=Q(ended_at__isnull=False))
                ),
            ],
        ),
    ]
