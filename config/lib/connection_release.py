"""Release of a thread's database connection before the thread waits for a third party (rule limit.slots)."""

from django.db import connection


def begin() -> None:
    """Return this thread's connection to the pool, except in a transaction. The next query takes a new one."""
    if not connection.in_atomic_block:
        connection.close()
