"""Whether the service is open: a database that was put back to an earlier moment is closed until it is repaired.

The provider may have moved money since that moment, of which the database knows nothing: what our books call held may
be captured there, and a refund that is repeated would be paid twice. Rule restore.closed.

The database keeps a mark of the server that it was opened on. A restored database has the mark, but another server
under it: another cluster (`pg_dump`, logical replication), a later timeline of the same one (a base back-up with
archived WAL, a replica that was promoted), or tables that were made anew. A storage snapshot brings all of that back as
it was; so whoever restores one sets DATABASE_RESTORED to a word that it has not had before.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from django.conf import settings
from django.db import OperationalError, connection

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


class Closed(OperationalError):
    """The database was restored: nothing is moved or told until `manage.py reconcile --repair` has ended."""


def check() -> None:
    """Raise Closed if the database was restored and not repaired since."""
    if is_closed():
        raise Closed


def is_closed() -> bool:
    """Whether the database was restored and not repaired since, as this process read three seconds ago at most."""
    return not _is_repairing.get() and not _is_open()


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


def _read() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_FITS, [settings.DATABASE_RESTORED])
        return bool(cursor.rowcount)


_is_open = Fresh(_read, seconds=FRESH_SECONDS)
