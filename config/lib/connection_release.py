"""Releases a thread's database connection before the thread waits for a third party (rule limit.slots)."""

from django.db import connection


def release() -> None:
    """Return this thread's connection to the pool, unless a transaction is open. The next query takes a new one."""
    if not connection.in_atomic_block:
        connection.close()
