"""What is not kept for ever: personal data a week, events with their log for 30 days (SPEC part 6, DESIGN 5).

Small batches, each a transaction of its own; what has not ended is never removed.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from config.lib import batches, clock
from webhooks import statements

PERSONAL_FOR = timedelta(days=7)
ROWS = 500


def purge_personal() -> int:
    """Remove the bodies of personal events that ended more than 7 days ago; returns how many."""
    return _in_batches(statements.PURGE_PERSONAL, {"before": clock.now() - PERSONAL_FOR})


def remove_old() -> int:
    """Remove events older than WEBHOOK_RETENTION, with deliveries and attempts; returns how many."""
    before = clock.now() - settings.WEBHOOK_RETENTION
    return _in_batches(statements.REMOVE_OLD, {"before": before, "first_id": clock.first_id(before)})


def _in_batches(statement: str, parameters: dict[str, Any]) -> int:
    def step(rows: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters | {"rows": rows})
            return int(cursor.rowcount)

    return batches.repeat(step, rows=ROWS)
