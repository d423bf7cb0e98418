"""New rows come at the end of an index, which is read backwards, and no page there is split in halves for them."""

from django.db import migrations
from django.db.models import Index

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


def turn(made: str, on: str, gone: str) -> list[str]:
    """Make an index, then drop the one in whose place it stands."""
    return [
        f"DROP INDEX CONCURRENTLY IF EXISTS {made}",
        f"CREATE INDEX CONCURRENTLY {made} ON {on}",
        f"DROP INDEX CONCURRENTLY IF EXISTS {gone}",
    ]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("payments", "0010_logos")]

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
    ]
