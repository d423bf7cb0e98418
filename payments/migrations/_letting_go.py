"""How a migration lets a foreign key go while the release before runs."""

import time
from collections.abc import Callable
from typing import Any

from django.db import OperationalError, migrations, models, transaction

from config.lib import locks

TRIES, PAUSE = 100, 0.05  # PAUSE in seconds
FOREIGN_KEY = """
SELECT k.conname, k.confrelid::regclass::text FROM pg_constraint k
JOIN pg_attribute a ON a.attrelid = k.conrelid AND k.conkey = ARRAY[a.attnum]
WHERE k.contype = 'f' AND k.conrelid = %s::regclass AND a.attname = %s
"""


def of_merchant(app: str, model: str) -> migrations.SeparateDatabaseAndState:
    """Return the operation that lets a model's foreign key to its merchant go."""
    table = f"{app}_{model}"
    field = models.ForeignKey(
        "payments.merchant", on_delete=models.PROTECT, db_index=False, db_constraint=False
    )
    both = let_go(table, "merchant_id"), take_back(table, "merchant_id", "payments_merchant")
    return migrations.SeparateDatabaseAndState(
        [migrations.RunPython(*both)], [migrations.AlterField(model, "merchant", field)]
    )


def let_go(table: str, column: str) -> Callable[[Any, Any], None]:
    """Return a step that drops the foreign key of a column, if it is there.

    It takes both tables at a moment when nobody uses them: who has one of them and comes to the other would wait for a
    migration that waits for them.
    """

    def step(apps: Any, schema_editor: Any) -> None:
        connection = schema_editor.connection
        with connection.cursor() as cursor:
            found = cursor.execute(FOREIGN_KEY, [table, column]).fetchone()
        if found is None:
            return
        name, other = found
        for left in reversed(range(TRIES)):
            try:
                with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
                    cursor.execute(f"LOCK TABLE {table}, {other} IN ACCESS EXCLUSIVE MODE NOWAIT")
                    cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
                return
            except OperationalError as error:
                if not left or not locks.is_locked(error):
                    raise
            time.sleep(PAUSE)

    return step


def take_back(table: str, column: str, other: str) -> Callable[[Any, Any], None]:
    """Return the step that makes the foreign key again."""

    def step(apps: Any, schema_editor: Any) -> None:
        schema_editor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_fk FOREIGN KEY ({column}) REFERENCES {other} (id)"
            " DEFERRABLE INITIALLY DEFERRED"
        )

    return step
