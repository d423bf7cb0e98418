"""The time up to which a list of changes is complete, so that its reader does not miss a row."""

from datetime import datetime

from config.lib.database import queries, statements


def horizon() -> datetime:
    """Return a time before which no more rows can appear. Read the list in a later statement.

    The result is the start of the service's oldest open transaction, because all earlier transactions have
    ended. The function subtracts one second, in case a transaction has begun but is not visible yet. Rule
    list.changes.
    """
    moment: datetime = queries.value(statements.READ_HORIZON)
    return moment
