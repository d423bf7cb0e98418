"""The SQLSTATE codes of database errors, for the log and the metrics.

The log line of each database error gets the error's code, such as 53100 for a full disk. Rules
environment.logs, environment.alerts.
"""

from collections.abc import MutableMapping
from typing import Any

from prometheus_client import Counter

MAX_CAUSES = 10  # how many exceptions of a chain are examined
ERRORS = Counter("checkout_database_errors", "Logged errors of the database, by their SQLSTATE", ["sqlstate"])
REFUSED_WRITES = (
    "53100",
    "58030",
    "25006",
)  # full disk, I/O error, read-only database: the errors that cause the alert WritesFail
for _sqlstate in REFUSED_WRITES:
    ERRORS.labels(_sqlstate)  # begin at 0; otherwise, an alert would not notice the first error


def add_sqlstate(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add `sqlstate` to a log line about a database error, and count the error. This is a structlog processor."""
    error = _logged_error(line.get("exc_info"))
    for _ in range(MAX_CAUSES):
        if error is None:
            break
        sqlstate = getattr(error, "sqlstate", None)
        if isinstance(sqlstate, str):
            ERRORS.labels(sqlstate).inc()
            line["sqlstate"] = sqlstate
            break
        error = error.__cause__
    return line


def _logged_error(exc_info: Any) -> BaseException | None:
    if isinstance(exc_info, tuple):
        return exc_info[1] if len(exc_info) > 1 else None
    return exc_info if isinstance(exc_info, BaseException) else None
