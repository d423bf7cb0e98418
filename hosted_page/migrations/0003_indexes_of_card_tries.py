"""Add the indexes with which the limits on pledges find the card attempts of a share and of a number."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("hosted_page", "0002_sql")]
    operations = [
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS card_try_of_subject", migrations.RunSQL.noop),
        AddIndexConcurrently("cardtry", models.Index("subject", "created_at", name="card_try_of_subject")),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS card_try_of_number", migrations.RunSQL.noop),
        AddIndexConcurrently(
            "cardtry", models.Index("phone_digest", "created_at", name="card_try_of_number")
        ),
    ]
