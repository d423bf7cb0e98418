"""The time limits of the database role. They apply behind a connection pooler too."""

from typing import Any

from django.db import connections

from config.lib.database import queries, statements

# In milliseconds. A hold lasts two minutes, so a long wait could prevent its capture. The limits apply to the
# wait for a row lock, to a statement, to a client that is idle in a transaction, and to a client that does not
# read its results.
LIMITS = {
    "lock_timeout": 3_000,
    "statement_timeout": 15_000,
    "idle_in_transaction_session_timeout": 20_000,
    "tcp_user_timeout": 20_000,
}


def set_limits(*, using: str, **_: Any) -> None:
    """Set the limits of the current role. Each `migrate` calls this, because a restored database lacks them."""
    database = connections[using].ops.quote_name(connections[using].settings_dict["NAME"])
    for limit, milliseconds in LIMITS.items():
        words = {"database": database, "limit": limit, "milliseconds": milliseconds}
        queries.execute(statements.SET_LIMIT.format(**words), using=using)


def missing_limits() -> list[str]:
    """Return the names of the limits that this connection lacks or exceeds.

    A Unix socket does not need a TCP limit.
    """
    limits = queries.rows(statements.READ_LIMITS, [list(LIMITS)])
    return [name for name, limit in limits if not 0 < limit <= LIMITS[name]]
