"""Startup checks of the database: its version, time limits, triggers and keys.

The service does not start if its database fails a check. Rule environment.database.
"""

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, ProgrammingError, connection

from config import statements
from config.lib.database import limits, queries
from payments import restore_guard
from portal import key_check

log = structlog.get_logger("config.startup_checks")
CLOSED = "The database was restored, and is closed until manage.py reconcile --repair has ended."
# Triggers that refuse forbidden changes or keep rows consistent. A data-only backup does not contain them.
REQUIRED_TRIGGERS = (
    *("a_transaction_sums_to_zero", "audit_entries_are_append_only"),
    *("bookings_are_append_only", "bookings_stay", "changes_are_append_only", "changes_stay"),
    *("checkout_begins", "checkout_moves"),
    *("checkout_notes_are_append_only", "customers_stay", "former_accounts_are_kept"),
    *("merchants_stay", "movements_are_append_only", "movements_stay"),
    *("opt_in_texts_are_append_only", "opt_ins_are_append_only", "opt_ins_stay"),
    *("orders_stay", "payments_stay", "postings_are_append_only", "postings_go_into_open_days"),
    *("share_begins", "share_moves"),
)
OLDEST = 160000  # PostgreSQL 16.0, in the format of server_version_num


def require_valid_database() -> None:
    """Raise ImproperlyConfigured if the database fails a check. If the database is closed, log an error.

    Skip the checks in `local`. Accept a database that does not answer, because /readyz checks it later.
    """
    try:
        found = [] if settings.LOCAL else problems_of_database()
        if not found and restore_guard.is_closed():
            log.error("closed", reason=CLOSED)
    except Error:
        return
    finally:
        connection.close()  # a forked process must open its own connection
        connection.close_pool()  # type: ignore[attr-defined]  # the stubs lack it
    if found:
        raise ImproperlyConfigured("\n".join(f"ENVIRONMENT={settings.ENVIRONMENT}: {one}" for one in found))


def problems_of_database() -> list[str]:
    """Return a sentence for each check that the database fails. Raises Error if it does not answer."""
    problems = []
    version = int(queries.value(statements.SHOW_VERSION))
    if version < OLDEST:
        problems.append(f"PostgreSQL must be 16 or newer, not {version // 10_000}.")
    if missing := limits.missing_limits():
        problems.append(
            f"The database's role lacks its time limits ({', '.join(missing)}). Run manage.py migrate."
        )
    if triggers := _missing_triggers():
        problems.append(
            f"The database lacks triggers that guard it, or they are switched off ({', '.join(triggers)})."
        )
    try:
        wrong = key_check.database_mismatch()
    except ProgrammingError:
        wrong = "The database lacks a table. Run manage.py migrate."
    return [*problems, *filter(None, [wrong])]


def _missing_triggers() -> list[str]:
    return [name for (name,) in queries.rows(statements.FIND_MISSING_TRIGGERS, [list(REQUIRED_TRIGGERS)])]


def reason_closed() -> str:
    """Return why the database is closed, or "" if it is open. Raises Error if it does not answer."""
    return CLOSED if restore_guard.is_closed() else ""
