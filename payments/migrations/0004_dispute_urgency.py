from django.db import migrations, models
from django.db.models import F

URGENCY = models.Index(F("closed_at").desc(), F("respond_by").asc(), F("id").desc(), name="dispute_urgency")


class Migration(migrations.Migration):
    atomic = False  # the index is built while disputes are written

    dependencies = [("payments", "0003_words")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.AddIndex("dispute", URGENCY)],
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS dispute_urgency", migrations.RunSQL.noop
                ),
                migrations.RunSQL(
                    "CREATE INDEX CONCURRENTLY dispute_urgency"
                    " ON payments_dispute (closed_at DESC, respond_by ASC, id DESC)",
                    "DROP INDEX CONCURRENTLY IF EXISTS dispute_urgency",
                ),
            ],
        )
    ]
