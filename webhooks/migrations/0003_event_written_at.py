"""When an event was written, by the database's clock: what there is gets the moment of this migration.

The default of the new column is first that one moment, so that no row is written anew, and then the clock.
"""

from django.db import migrations, models
from django.db.models import Func


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0002_closed_deliveries")]

    operations = [
        migrations.RunSQL(
            [
                "ALTER TABLE webhooks_event ADD COLUMN written_at timestamptz NOT NULL DEFAULT now()",
                "ALTER TABLE webhooks_event ALTER COLUMN written_at SET DEFAULT clock_timestamp()",
            ],
            "ALTER TABLE webhooks_event DROP COLUMN written_at",
            state_operations=[
                migrations.AddField(
                    "event",
                    "written_at",
                    models.DateTimeField(
                        db_default=Func(function="clock_timestamp"),
                        editable=False,
                        help_text="When the row was written; if before there was this column, when it came.",
                    ),
                )
            ],
        )
    ]
