"""Events are listed in the order in which they were written, by an index in the place of the one by their date."""

from django.db import migrations, models
from django.db.models import Q

from config.lib.database import partitions

DATED = ("event_of_merchant", "(merchant_id, created_at DESC, id DESC)")
WRITTEN = ("event_written", "(merchant_id, written_at, id)")
SELDOM = ("event_written_seldom", "(merchant_id, type, written_at, id) WHERE type <> 'checkout.authorized'")


def turn(made, gone):
    """Return an act that makes indexes, then drops others: of a partitioned table that takes no time, and a lock."""

    def act(apps, editor):
        with editor.connection.cursor() as cursor:
            for name, columns in made:
                partitions.make_index(cursor, table="webhooks_event", name=name, columns=columns)
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
