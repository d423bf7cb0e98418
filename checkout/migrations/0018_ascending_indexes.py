"""New rows come at the end of an index, which is read backwards, and no page there is split in halves for them."""

from django.db import migrations
from django.db.models import Index

# By the name of each index before: its name, columns and fields now.
TURNED = {
    "checkout_ch_merchan_3dd1ea_idx": (
        "checkout_listed",
        "(merchant_id, created_at{down}, id{down})",
        ["merchant", "created_at", "id"],
    ),
    "checkout_ch_merchan_8e4d40_idx": (
        "checkout_of_status",
        "(merchant_id, status, created_at{down}, id{down})",
        ["merchant", "status", "created_at", "id"],
    ),
    "checkout_ch_merchan_837a45_idx": (
        "checkout_changed",
        "(merchant_id, updated_at{down})",
        ["merchant", "updated_at"],
    ),
}


def turn(made: str, columns: str, gone: str) -> list[str]:
    """Make an index, then drop the one in whose place it stands."""
    return [
        f"DROP INDEX CONCURRENTLY IF EXISTS {made}",
        f"CREATE INDEX CONCURRENTLY {made} ON checkout_checkout {columns}",
        f"DROP INDEX CONCURRENTLY IF EXISTS {gone}",
    ]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("checkout", "0017_requests_told")]

    operations = [
        *(
            migrations.RunSQL(
                turn(after, on.format(down=""), before),
                turn(before, on.format(down=" DESC"), after),
                state_operations=[
                    migrations.RemoveIndex("checkout", before),
                    migrations.AddIndex("checkout", Index(fields=fields, name=after)),
                ],
            )
            for before, (after, on, fields) in TURNED.items()
        ),
    ]
