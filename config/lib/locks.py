"""Rows that somebody else holds."""

import psycopg.errors


def is_locked(error: Exception) -> bool:
    """Return whether a statement failed since somebody held its row for longer than it could wait."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable)
