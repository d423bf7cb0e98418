"""The newest time that a list of changes may include, so that a reader who continues there misses no row."""

from datetime import datetime

from django.db import connection


def horizon() -> datetime:
    """Return a moment before which no more rows appear: rows of earlier statements are visible now, or never.

    The moment is the start of the service's oldest open transaction. Read the list in a later statement. One
    second is subtracted, for a transaction that has begun but is not visible yet. Rule list.changes.
    """
    with connection.cursor() as cursor:
        cursor.execute(_HORIZON)
        row: tuple[datetime] = cursor.fetchone()
    return row[0]


# PostgreSQL does not show the start for sessions of other roles. Only the service's role writes the listed
# rows.
_HORIZON = """
SELECT least(statement_timestamp(), min(xact_start)) - interval '1 second' FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
