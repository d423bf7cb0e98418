"""Threads that are about to wait for something outside hold no database connection meanwhile (rule limit.slots)."""

from django.db import connection


def begin() -> None:
    """Give this thread's connection back to the pool; the next query takes one again. Not in a transaction."""
    if not connection.in_atomic_block:
        connection.close()
