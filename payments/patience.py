"""How long the database lets us wait: limits of the role, which hold behind a connection pooler too."""

from typing import Any

from django.db import connection, connections

# In milliseconds. A hold lives for two minutes: who waits longer than this for a row, a statement, a client that is
# idle or one that takes no more of an answer keeps it from being captured.
LIMITS = {
    "lock_timeout": 3_000,
    "statement_timeout": 15_000,
    "idle_in_transaction_session_timeout": 20_000,
    "tcp_user_timeout": 20_000,
}


def set_limits(*, using: str, **_: Any) -> None:
    """Set the limits of the role that migrates: after each `migrate`, since a restored database has none."""
    with connections[using].cursor() as cursor:
        name = connections[using].ops.quote_name(connections[using].settings_dict["NAME"])
        for limit, milliseconds in LIMITS.items():
            cursor.execute(f"ALTER ROLE CURRENT_USER IN DATABASE {name} SET {limit} = {milliseconds}")


def missing() -> list[str]:
    """Return the limits that this connection lacks, or has wider. Over a socket there is no TCP to time out."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, setting::int FROM pg_settings WHERE name = ANY(%s)"
            " AND (name <> 'tcp_user_timeout' OR inet_client_addr() IS NOT NULL) ORDER BY name",
            [list(LIMITS)],
        )
        return [name for name, found in cursor.fetchall() if not 0 < found <= LIMITS[name]]
