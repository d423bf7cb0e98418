"""What the portal's log of requests tells beside the status: the refused field, how long it took; newest first."""

from django.db import migrations, models

from config.lib.database import partitions

TABLE, NAME, COLUMNS = "checkout_apicall", "apicall_of_merchant", "(merchant_id, created_at DESC, id DESC)"


def make(apps, editor):
    with editor.connection.cursor() as cursor:
        partitions.make_index(cursor, table=TABLE, name=NAME, columns=COLUMNS)


def drop(apps, editor):
    with editor.connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX IF EXISTS {NAME}")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("checkout", "0016_time_passes_for_history")]

    operations = [
        migrations.AddField(
            "apicall",
            "param",
            models.CharField(
                blank=True, db_default="", default="", help_text="The field that was refused.", max_length=100
            ),
        ),
        migrations.AddField("apicall", "duration_ms", models.PositiveIntegerField(blank=True, null=True)),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(make, drop)],
            state_operations=[
                migrations.AddIndex(
                    "apicall", models.Index(fields=["merchant", "-created_at", "-id"], name=NAME)
                )
            ],
        ),
    ]
