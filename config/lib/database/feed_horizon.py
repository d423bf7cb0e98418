"""The newest time that a list of changes may include, so that a reader who continues there misses no row."""

from datetime import datetime

from config.lib.database import queries, statements


def horizon() -> datetime:
    """Return a moment before which no more rows appear: rows of earlier statements are visible now, or never.

    The moment is the start of the service's oldest open transaction. Read the list in a later statement. One
    second is subtracted, for a transaction that has begun but is not visible yet. Rule list.changes.
    """
    moment: datetime = queries.value(statements.READ_HORIZON)
    return moment
