from django.db import migrations, models

INDEX = models.Index(
    fields=["merchant", "created_at", "id"], name="checkout_split", condition=models.Q(("people__gt", 1))
)


class Migration(migrations.Migration):
    atomic = False  # the index is built while orders are written

    dependencies = [("checkout", "0003_groups")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.AddIndex(model_name="checkout", index=INDEX)],
            database_operations=[
                # An index that was interrupted is not valid, and is built again.
                migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS checkout_split", migrations.RunSQL.noop),
                migrations.RunSQL(
                    "CREATE INDEX CONCURRENTLY checkout_split ON checkout_checkout (merchant_id, created_at, id)"
                    " WHERE people > 1",
                    "DROP INDEX CONCURRENTLY IF EXISTS checkout_split",
                ),
            ],
        )
    ]
