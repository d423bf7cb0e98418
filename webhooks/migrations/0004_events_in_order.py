"""Events are listed in the order in which they were written, by an index in the place of the one by their date.

PostgreSQL makes an index of a partitioned table concurrently for one partition at a time: the table's own is declared
first, which partitions that come meanwhile are made with, and is valid once the last of those that were there has it.
"""

from django.db import migrations, models
from django.db.models import Q

DATED = ("event_of_merchant", "(merchant_id, created_at DESC, id DESC)")
WRITTEN = ("event_written", "(merchant_id, written_at, id)")
SELDOM = ("event_written_seldom", "(merchant_id, type, written_at, id) WHERE type <> 'checkout.authorized'")
# Partitions whose index has not been attached to the table's own yet.
MISSING = """
SELECT child.inhrelid::regclass::text FROM pg_inherits child
WHERE child.inhparent = 'webhooks_event'::regclass AND NOT EXISTS (
    SELECT FROM pg_inherits attached JOIN pg_index made ON made.indexrelid = attached.inhrelid
    WHERE attached.inhparent = %s::regclass AND made.indrelid = child.inhrelid)
"""


def make(editor, name, columns):
    """Make an index of all partitions; whoever runs it again goes on where it broke off."""
    with editor.connection.cursor() as cursor:
        cursor.execute(f"CREATE INDEX IF NOT EXISTS {name} ON ONLY webhooks_event {columns}")
        cursor.execute(MISSING, [name])
        for (partition,) in cursor.fetchall():
            part = f"{partition}_{name.removeprefix('event_')}"
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {part}")
            cursor.execute(f"CREATE INDEX CONCURRENTLY {part} ON {partition} {columns}")
            cursor.execute(f"ALTER INDEX {name} ATTACH PARTITION {part}")


def turn(made, gone):
    """Return an act that makes indexes, then drops others: of a partitioned table that takes no time, and a lock."""

    def act(apps, editor):
        for name, columns in made:
            make(editor, name, columns)
        with editor.connection.cursor() as cursor:
            for name, _ in gone:
                cursor.execute(f"DROP INDEX IF EXISTS {name}")

    return act


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("webhooks", "0003_event_written_at")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunPython(turn([WRITTEN, SELDOM], [DATED]), turn([DATED], [WRITTEN, SELDOM]))
            ],
            state_operations=[
                migrations.RemoveIndex("event", DATED[0]),
                migrations.AddIndex(
                    "event", models.Index(fields=["merchant", "written_at", "id"], name=WRITTEN[0])
                ),
                migrations.AddIndex(
                    "event",
                    models.Index(
                        fields=["merchant", "type", "written_at", "id"],
                        name=SELDOM[0],
                        condition=~Q(type="checkout.authorized"),
                    ),
                ),
            ],
        )
    ]
