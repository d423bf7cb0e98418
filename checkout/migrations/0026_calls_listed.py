"""New calls come at the end of their list's index, read backwards, and no page is split in halves for them."""

from django.db import migrations
from django.db.models import Index

from config.lib.database import partitions


def turn(made, gone, down):
    def act(apps, editor):
        with editor.connection.cursor() as cursor:
            columns = f"(merchant_id, created_at{down}, id{down})"
            partitions.make_index(cursor, table="checkout_apicall", name=made, columns=columns)
            cursor.execute(f"DROP INDEX IF EXISTS {gone}")

    return act


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("checkout", "0025_no_order_locks_its_payment")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunPython(
                    turn("apicall_listed", "apicall_of_merchant", ""),
                    turn("apicall_of_merchant", "apicall_listed", " DESC"),
                )
            ],
            state_operations=[
                migrations.RemoveIndex("apicall", "apicall_of_merchant"),
                migrations.AddIndex(
                    "apicall", Index(fields=["merchant", "created_at", "id"], name="apicall_listed")
                ),
            ],
        )
    ]
