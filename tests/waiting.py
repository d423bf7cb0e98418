"""Waits for events in other threads or processes."""

import time
from collections.abc import Callable

from django.db import connection

WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def wait_for(condition: Callable[[], bool], *, within: float = 5) -> None:
    """Return as soon as the condition is true. Fail if it is not true within `within` seconds."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def waiting_for_locks() -> int:
    """Return the number of connections that wait for a lock.

    Clear the statistics snapshot first. Otherwise, further calls in the same transaction would return the
    first result again.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(WAITING)
        return int(cursor.fetchone()[0])
