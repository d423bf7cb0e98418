from django.db import migrations, models

# A database that has got this far is on the server where it was opened.
OPENED = """
INSERT INTO payments_databasemark (id, server, word, opened_at)
SELECT 1, concat_ws('/', system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8),
    'payments_databasemark'::regclass::oid), '', now()
FROM pg_control_system()
"""


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0005_traceparent"),
    ]

    operations = [
        migrations.CreateModel(
            name="DatabaseMark",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("server", models.CharField(max_length=100)),
                (
                    "word",
                    models.CharField(
                        blank=True, help_text="DATABASE_RESTORED, as it was then.", max_length=100
                    ),
                ),
                ("opened_at", models.DateTimeField(auto_now=True)),
                (
                    "repair_since",
                    models.DateTimeField(
                        blank=True,
                        help_text="From when on a repair that was begun reads the provider's books.",
                        null=True,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="a_database_has_one_mark")
                ],
            },
        ),
        migrations.RunSQL(OPENED, migrations.RunSQL.noop),
    ]
