"""New attempts come at the end of their list's index, read backwards, and no page is split in halves for them."""

from django.db import migrations
from django.db.models import Index

from config.lib.database import partitions


def turn(made, gone, down):
    def act(apps, editor):
        with editor.connection.cursor() as cursor:
            columns = f"(merchant_id, started_at{down}, id{down})"
            partitions.make_index(cursor, table="webhooks_attempt", name=made, columns=columns)
            cursor.execute(f"DROP INDEX IF EXISTS {gone}")

    return act


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("webhooks", "0005_attempts_end_in_no_index")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunPython(
                    turn("attempt_listed", "attempt_of_merchant", ""),
                    turn("attempt_of_merchant", "attempt_listed", " DESC"),
                )
            ],
            state_operations=[
                migrations.RemoveIndex("attempt", "attempt_of_merchant"),
                migrations.AddIndex(
                    "attempt", Index(fields=["merchant", "started_at", "id"], name="attempt_listed")
                ),
            ],
        )
    ]
