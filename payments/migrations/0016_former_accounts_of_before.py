"""The former accounts that payments so far were made in, a range at a time."""

from typing import Any

from django.db import migrations

RANGE = 10_000
KEEP = """
WITH payments AS (
    SELECT id, merchant_id, provider_account FROM payments_payment WHERE id > %s ORDER BY id LIMIT %s
), kept AS (
    INSERT INTO payments_formeraccount (merchant_id, provider_account)
    SELECT DISTINCT merchant.id, payments.provider_account
    FROM payments JOIN payments_merchant merchant ON merchant.id = payments.merchant_id
    WHERE payments.provider_account <> merchant.provider_account
    ON CONFLICT DO NOTHING
)
SELECT max(id::text)::uuid FROM payments
"""


def keep(apps: Any, schema_editor: Any) -> None:
    """Keep what the trigger was too late for; begun again, it does the same once more."""
    last = "00000000-0000-0000-0000-000000000000"
    with schema_editor.connection.cursor() as cursor:
        while last is not None:
            cursor.execute(KEEP, [last, RANGE])
            (last,) = cursor.fetchone()


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("payments", "0015_former_accounts")]

    operations = [migrations.RunPython(keep, migrations.RunPython.noop, elidable=True)]
