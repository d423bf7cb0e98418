"""Indexes that other ones stand in for, and room on the pages of messages, so that a claim writes no index."""

from django.db import migrations

# By model and name: the index as it was made.
DROPPED = {
    ("cardtry", "card_try_age"): "hosted_page_cardtry (created_at)",
    ("smsmessage", "hosted_page_created_f236f7_idx"): "hosted_page_smsmessage (created_at)",
    ("smsmessage", "sms_due"): "hosted_page_smsmessage (due_at) WHERE due_at IS NOT NULL",
}


def drop(model: str, name: str, made: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {made}",
        state_operations=[migrations.RemoveIndex(model, name)],
    )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("hosted_page", "0006_index_nobody_reads")]

    operations = [
        *(drop(*index, made) for index, made in DROPPED.items()),
        migrations.RunSQL(
            "ALTER TABLE hosted_page_smsmessage SET (fillfactor = 50)",
            "ALTER TABLE hosted_page_smsmessage RESET (fillfactor)",
        ),
    ]
