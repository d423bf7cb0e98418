"""A call's key is looked for among the lines of its payment: no query asks for it alone."""

from django.db import migrations

NAME = "bank_call_reference"


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("bank", "0004_a_charge_keeps_its_card")]

    operations = [
        migrations.RunSQL(
            f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}",
            [
                f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}",
                f"CREATE INDEX CONCURRENTLY {NAME} ON bank_call (reference)",
            ],
            state_operations=[migrations.RemoveIndex("call", NAME)],
        )
    ]
