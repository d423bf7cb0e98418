"""Gives a thread's database connection back before it waits for something outside (rule limit.slots)."""

from django.db import connection


def begin() -> None:
    """Give this thread's connection back to the pool, unless in a transaction; the next query takes one again."""
    if not connection.in_atomic_block:
        connection.close()
