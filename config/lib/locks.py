"""Recognizes statements that failed because another transaction held the lock on their row."""

import psycopg.errors


def is_locked(error: Exception) -> bool:
    """Return whether a statement failed because its row stayed locked for longer than lock_timeout."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable)
