"""Django's second index of a unique text, for LIKE: no query asks so."""

from django.db import migrations

DROPPED = (("bank_cardtoken_digest_c66c3eae_like", "bank_cardtoken (digest varchar_pattern_ops)"),)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("bank", "0001_initial"),
    ]

    operations = [
        *(
            migrations.RunSQL(
                f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
                f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {columns}",
            )
            for name, columns in DROPPED
        ),
    ]
