"""The leads of all orders so far, a range at a time, and no index of them on the order's own row any more.

A version of that row which had another lead was written into all of its indexes.
"""

from typing import Any

from django.db import migrations

RANGE = 10_000
COPY = """
WITH leads AS (
    SELECT id, lead_id FROM checkout_checkout WHERE id > %s ORDER BY id LIMIT %s
), copied AS (
    INSERT INTO checkout_lead (checkout_id, customer_id) SELECT id, lead_id FROM leads WHERE lead_id IS NOT NULL
    ON CONFLICT DO NOTHING
)
SELECT max(id::text)::uuid FROM leads
"""


def copy(apps: Any, schema_editor: Any) -> None:
    """Copy what the trigger has not written by itself; begun again, it does the same once more."""
    last = "00000000-0000-0000-0000-000000000000"
    with schema_editor.connection.cursor() as cursor:
        while last is not None:
            cursor.execute(COPY, [last, RANGE])
            (last,) = cursor.fetchone()


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("checkout", "0019_leads_found")]

    operations = [
        migrations.RunPython(copy, migrations.RunPython.noop, elidable=True),
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS checkout_led",
            [
                "DROP INDEX CONCURRENTLY IF EXISTS checkout_led",
                "CREATE INDEX CONCURRENTLY checkout_led ON checkout_checkout (lead_id) WHERE lead_id IS NOT NULL",
            ],
            state_operations=[migrations.RemoveIndex("checkout", "checkout_led")],
        ),
    ]
