"""What is not kept for ever: personal data a week, events with their log for 30 days (SPEC part 6, DESIGN 5).

Small batches, each a transaction of its own; what has not ended is never removed.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from config.lib import clock
from webhooks import statements

PERSONAL_FOR = timedelta(days=7)
ROWS = 500
BATCHES = 2000  # of one run, so that it keeps up with 200 events a second; the next one goes on


def purge_personal() -> int:
    """Remove the bodies of personal events that ended more than 7 days ago; returns how many."""
    return _in_batches(statements.PURGE_PERSONAL, {"before": clock.now() - PERSONAL_FOR})


def remove_old() -> int:
    """Remove events older than WEBHOOK_RETENTION, with deliveries and attempts; returns how many."""
    before = clock.now() - settings.WEBHOOK_RETENTION
    return _in_batches(statements.REMOVE_OLD, {"before": before, "first_id": clock.first_id(before)})


def _in_batches(statement: str, parameters: dict[str, Any]) -> int:
    removed = 0
    for _ in range(BATCHES):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, parameters | {"rows": ROWS})
            rows = cursor.rowcount
        removed += rows
        if rows < ROWS:
            break
    return removed
