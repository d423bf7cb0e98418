"""Release of a thread's database connection before a wait for an outside party (rule limit.slots)."""

from django.db import connection


def begin() -> None:
    """Release this thread's connection to the pool, except in a transaction. The next query takes one."""
    if not connection.in_atomic_block:
        connection.close()
