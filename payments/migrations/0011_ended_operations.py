"""Operations that ended within an hour are found by the pages that hold them, not by an entry for each in an index."""

from django.contrib.postgres.indexes import BrinIndex
from django.db import migrations

BEFORE, AFTER = "operation_ended", "operation_ended_lately"
OF_PAGES = "payments_operation USING brin (ended_at) WITH (autosummarize = on, pages_per_range = 32)"
OF_EACH = "payments_operation (ended_at) WHERE ended_at IS NOT NULL"


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
            turn(AFTER, OF_PAGES, BEFORE),
            turn(BEFORE, OF_EACH, AFTER),
            state_operations=[
                migrations.RemoveIndex("operation", BEFORE),
                migrations.AddIndex(
                    "operation",
                    BrinIndex(fields=["ended_at"], name=AFTER, autosummarize=True, pages_per_range=32),
                ),
            ],
        )
    ]
