"""Closes the service if its database was restored to an earlier state, until the database is repaired.

The provider might have moved money after this earlier state, and the database would have no record of it. For
example, a payment that is held in the database might have been captured at the provider. A refund that is missing in
the database could be paid twice. Rule restore.closed.

The database stores a mark that identifies the server on which it was opened. A restored database contains this mark,
but runs on a different server. After `pg_dump` or logical replication, this is a different cluster. After a base backup
with archived WAL, or on a promoted replica, it is a later timeline of the same cluster. Newly created tables also count
as a different server. A storage snapshot also restores the identity of the server. After restoring a snapshot, an
operator must therefore set DATABASE_RESTORED to a new word.

The service reads the mark once on each new connection, and every three seconds. A failover can move the database's
address to a different server. A thread that has found the service open therefore cannot connect to a server that does
not match the mark.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.signals import request_started
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection
from django.db.backends.signals import connection_created

from config.lib.database import queries, replica
from config.lib.process.cached_reads import CachedRead
from payments import statements

CACHE_SECONDS = 3.0
_is_repairing = ContextVar("is_repairing", default=False)
# `_thread.was_open` is true if the last check by this thread in the current request found the service open.
_thread = threading.local()


class ServiceClosed(OperationalError):
    """The database was restored. Until it is repaired, the service does not move money or send messages.

    The repair is `manage.py reconcile --repair`.
    """


def check() -> None:
    """Raise ServiceClosed if the database was restored and has not been repaired since."""
    if is_closed():
        raise ServiceClosed


def is_closed() -> bool:
    """Return whether the database was restored and has not been repaired since.

    The answer uses a mark that this process read at most four seconds ago. If this thread has a connection, the mark
    was also read on that connection.
    """
    if _is_repairing.get():
        return False
    _discard_result()  # so that a new connection for this read does not raise ServiceClosed
    with replica.use_primary():
        driver_connection: Any = connection.connection
        _thread.was_open = (
            _is_open() if driver_connection is None or _has_matching_mark(driver_connection) else _read_mark()
        )
    return not _thread.was_open


def begin_repair(since: datetime) -> datetime:
    """Store and return the time from which a repair reads the provider's books.

    This time is `since`, or the time of an earlier repair that has not ended, whichever is earlier.
    """
    begun: datetime = queries.value(statements.BEGIN_REPAIR, [since])
    return begun


def reopen_service() -> None:
    """Mark the database as opened on this server, because it was repaired."""
    queries.execute(statements.MARK_DATABASE_AS_OPENED, [settings.DATABASE_RESTORED])
    _is_open.invalidate()


@contextmanager
def repair_mode() -> Iterator[None]:
    """Allow this thread to change orders in a closed database while the `with` block runs."""
    token = _is_repairing.set(True)
    try:
        yield
    finally:
        _is_repairing.reset(token)


def _read_mark(checked: Any = connection) -> bool:
    # The mark must be read on exactly this connection, so `queries` cannot be used.
    with checked.cursor() as cursor:
        cursor.execute(statements.FIND_MATCHING_DATABASE_MARK, [settings.DATABASE_RESTORED])
        checked.connection.is_of_open_server = bool(cursor.rowcount)
    return _has_matching_mark(checked.connection)


def _has_matching_mark(driver_connection: Any) -> bool:
    """Return whether the mark was read on this driver connection and matches the server."""
    return getattr(driver_connection, "is_of_open_server", False)


def _check_new_connection(connection: Any, **_: Any) -> None:
    """Raise ServiceClosed if this thread has found the service open but now connects to a different server."""
    was_open = getattr(_thread, "was_open", False)
    if connection.alias != DEFAULT_DB_ALIAS or not was_open or _has_matching_mark(connection.connection):
        return
    is_open = False
    try:
        is_open = _read_mark(connection)
    finally:
        if not is_open:
            connection.close()
            _is_open.invalidate()
    if not is_open:
        raise ServiceClosed


def _discard_result(**_: Any) -> None:
    _thread.was_open = False


connection_created.connect(_check_new_connection)
# Each request discards the result of an earlier check. Otherwise, pages that only read would not work while the
# service is closed.
request_started.connect(_discard_result)
_is_open = CachedRead(_read_mark, seconds=CACHE_SECONDS)
