"""Waits for events in another thread or process."""

import time
from collections.abc import Callable

from django.db import connection

WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def wait_for(condition: Callable[[], bool], *, within: float = 5) -> None:
    """Return once the condition is true; fail if it is not true within `within` seconds."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def waiting_for_locks() -> int:
    """Return how many connections wait for a lock.

    The statistics snapshot is cleared first. Otherwise, repeated calls in a transaction would return the
    first result.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(WAITING)
        return int(cursor.fetchone()[0])
