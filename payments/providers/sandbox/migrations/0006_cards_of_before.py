"""The cards of all charges that a release before the last one has made, a range at a time."""

from typing import Any

from django.db import migrations

RANGE = 10_000
COPY = """
WITH charges AS (
    SELECT id FROM bank_charge WHERE id > %s ORDER BY id LIMIT %s
), copied AS (
    UPDATE bank_charge charge SET subject = token.subject, last4 = token.last4
    FROM charges, bank_cardtoken token
    WHERE charge.id = charges.id AND token.id = charge.token_id AND charge.last4 = ''
)
SELECT max(id::text)::uuid FROM charges
"""


def copy(apps: Any, schema_editor: Any) -> None:
    """Copy what is not there yet; begun again, it does nothing twice."""
    last = "00000000-0000-0000-0000-000000000000"
    with schema_editor.connection.cursor() as cursor:
        while last is not None:
            cursor.execute(COPY, [last, RANGE])
            (last,) = cursor.fetchone()


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("bank", "0005_index_nobody_reads")]

    operations = [migrations.RunPython(copy, migrations.RunPython.noop, elidable=True)]
