"""Whether the service is open: a database that was put back to an earlier moment is closed until it is repaired.

The provider may have moved money since that moment, of which the database knows nothing: what our books call held may
be captured there, and a refund that is repeated would be paid twice. Rule restore.closed.

The database keeps a mark of the server that it was opened on. A restored database has the mark, but another server
under it: another cluster (`pg_dump`, logical replication), a later timeline of the same one (a base back-up with
archived WAL, a replica that was promoted), or tables that were made anew. A storage snapshot brings all of that back as
it was; so whoever restores one sets DATABASE_RESTORED to a word that it has not had before.

The mark is read once on each new connection, and every three seconds. A thread that was told that the database is open
gets no connection to a server that the mark does not fit: a failover may have moved the address in between.
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

from config.lib.database import replica
from config.lib.process.fresh import Fresh

FRESH_SECONDS = 3.0
# The row is payments.models.DatabaseMark; plain SQL, since Celery asks before there are models.
_SERVER = """(
    SELECT concat_ws('/', system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8),
        'payments_databasemark'::regclass::oid)
    FROM pg_control_system()
)"""
_FITS = f"SELECT FROM payments_databasemark WHERE server = {_SERVER} AND word = %s"
_MARK = f"""
INSERT INTO payments_databasemark (id, server, word, opened_at) VALUES (1, {_SERVER}, %s, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET server = excluded.server, word = excluded.word, opened_at = excluded.opened_at,
    repair_since = NULL
"""  # noqa: S608 - of constants alone
# A repair that broke off has written history: what it was to read from, the next one cannot tell from that.
_BEGIN = """
INSERT INTO payments_databasemark (id, server, word, opened_at, repair_since) VALUES (1, '', '', clock_timestamp(), %s)
ON CONFLICT (id) DO UPDATE SET repair_since = least(payments_databasemark.repair_since, excluded.repair_since)
RETURNING repair_since
"""
_is_repairing = ContextVar("is_repairing", default=False)
_thread = threading.local()  # was_told_open: what it was told last, in this request


class Closed(OperationalError):
    """The database was restored: nothing is moved or told until `manage.py reconcile --repair` has ended."""


def check() -> None:
    """Raise Closed if the database was restored and not repaired since."""
    if is_closed():
        raise Closed


def is_closed() -> bool:
    """Return whether the database was restored and not repaired since.

    This process has read that three seconds ago at most, and on the connection that this thread has.
    """
    if _is_repairing.get():
        return False
    _clear_answer()  # to read may take a connection to another server
    with replica.primary():
        own: Any = connection.connection
        _thread.was_told_open = _is_open() if own is None or _is_known(own) else _read()
    return not _thread.was_told_open


def begin_repair(since: datetime) -> datetime:
    """Note from when on the provider's books are read, and return that: the earliest of all tries until one ends."""
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN, [since])
        begun: datetime = cursor.fetchone()[0]
    return begun


def open_again() -> None:
    """Mark the database as one that belongs to this server, now that it is repaired."""
    with connection.cursor() as cursor:
        cursor.execute(_MARK, [settings.DATABASE_RESTORED])
    _is_open.read_anew()


@contextmanager
def repairing() -> Iterator[None]:
    """Let this thread move orders of a closed database until the block ends."""
    token = _is_repairing.set(True)
    try:
        yield
    finally:
        _is_repairing.reset(token)


def _read(asked: Any = connection) -> bool:
    with asked.cursor() as cursor:
        cursor.execute(_FITS, [settings.DATABASE_RESTORED])
        asked.connection.is_of_open_server = bool(cursor.rowcount)
    return _is_known(asked.connection)


def _is_known(own: Any) -> bool:
    """Whether the mark was read on this connection of the driver, and fits its server."""
    return getattr(own, "is_of_open_server", False)


def _check_new(connection: Any, **_: Any) -> None:
    """Raise Closed if a thread that was told that the database is open has got a connection to another server."""
    was_told_open = getattr(_thread, "was_told_open", False)
    if connection.alias != DEFAULT_DB_ALIAS or not was_told_open or _is_known(connection.connection):
        return
    is_open = False
    try:
        is_open = _read(connection)
    finally:
        if not is_open:
            connection.close()
            _is_open.read_anew()
    if not is_open:
        raise Closed


def _clear_answer(**_: Any) -> None:
    _thread.was_told_open = False


connection_created.connect(_check_new)
request_started.connect(_clear_answer)  # a page that only reads may be shown from a closed database
_is_open = Fresh(_read, seconds=FRESH_SECONDS)
