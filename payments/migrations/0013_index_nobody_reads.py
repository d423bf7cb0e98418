"""What has not ended is found by when it is due, or by its payment."""

from django.db import migrations

NAME = "operation_not_ended"


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("payments", "0012_no_payment_locks_its_merchant")]

    operations = [
        migrations.RunSQL(
            f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}",
            [
                f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}",
                f"CREATE INDEX CONCURRENTLY {NAME} ON payments_operation (payment_id) WHERE ended_at IS NULL",
            ],
            state_operations=[migrations.RemoveIndex("operation", NAME)],
        )
    ]
