"""Whether the database is the one that was meant: version, time limits, tables, keys. No other is served from.

Rule environment.database.
"""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, ProgrammingError, connection

from payments import patience
from portal import canary

OLDEST = 160000  # PostgreSQL 16.0, as server_version_num has it


def require() -> None:
    """Raise ImproperlyConfigured if the database does not fit, except in local.

    One that does not answer may still be the right one: /readyz looks again.
    """
    if settings.LOCAL:
        return
    try:
        found = reason()
    except Error:
        return
    finally:
        connection.close()  # a process that is forked from this one opens its own
        connection.close_pool()  # type: ignore[attr-defined]  # the stubs lack it
    if found:
        raise ImproperlyConfigured(f"ENVIRONMENT={settings.ENVIRONMENT}: {found}")


def reason() -> str:
    """Return a sentence why the database does not fit, "" if it does. Raises Error if it does not answer."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        version = int(cursor.fetchone()[0])
    if version < OLDEST:
        return f"PostgreSQL must be 16 or newer, not {version // 10_000}."
    missing = patience.missing()
    if missing:
        return f"The database's role lacks its time limits ({', '.join(missing)}). Run manage.py migrate."
    try:
        return canary.reason()
    except ProgrammingError:
        return "The database lacks a table. Run manage.py migrate."
