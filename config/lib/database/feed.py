"""How far a list of changes may go, so that whoever goes on from its end misses nothing."""

from datetime import datetime

from django.db import connection


def horizon() -> datetime:
    """Return a moment before which nothing is written any more: rows of earlier statements are there, or never come.

    It is the start of the oldest transaction of ours that is open, and the list must be read in a later statement. A
    second is taken off for a transaction that has begun and does not show yet. Rule list.changes.
    """
    with connection.cursor() as cursor:
        cursor.execute(_HORIZON)
        row: tuple[datetime] = cursor.fetchone()
    return row[0]


# Sessions of other roles show no start: the service's role is the only one that writes what is listed.
_HORIZON = """
SELECT least(statement_timestamp(), min(xact_start)) - interval '1 second' FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
