"""Who may read on the replica says so, and is read there while nothing speaks against it (rules replica.*).

For as long as the function of `read` runs, this thread's default connection is one to the replica: whatever it asks
goes there, by the ORM or by SQL, and PostgreSQL refuses what it writes. So no verb can read there by mistake, and the
function that runs on the primary instead is the same one.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg.errors
from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    NotSupportedError,
    OperationalError,
    connection,
    connections,
)
from prometheus_client import Counter

from config.lib import idle
from config.lib.database import lag
from config.lib.database.bounded import ANSWER_SECONDS, STATEMENT_SECONDS
from config.lib.database.lag import ALIAS

Read = TypeVar("Read")
View = TypeVar("View", bound=Callable[..., Any])
READS = Counter("checkout_replica_reads_total", "Pages and parts of files that a replica may serve", ["by"])
# What replaying the log does to one query that is in its way; the next one finds nothing wrong.
CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
LOOKING = frozenset({"GET", "HEAD"})
_HAS = "SELECT pg_is_in_recovery() AND pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0') >= %s"
_thread = threading.local()  # primary: the connection that is the default one again after the block


def readable(view: View) -> View:
    """Mark a view that only shows what may be a little old: its guard then calls it by `read`."""
    view.is_readable = True  # type: ignore[attr-defined]  # ours
    return view


def may_read(view: Any, method: str | None) -> bool:
    """Return whether a request of this method to the view may be served by the replica."""
    return method in LOOKING and getattr(view, "is_readable", False)


def read(call: Callable[[], Read], *, since: Callable[[], int] = int) -> Read:
    """Call the function on the replica, if that is not late and has reached the position `since`, else on the primary.

    A replica that fails meanwhile has the function called anew, on the primary; so it only reads. In a transaction of
    the primary, or in another block, it runs where it is.
    """
    if ALIAS not in connections.settings or _own() is not None or connection.in_atomic_block:
        return call()
    wanted = lag.wanted()
    if wanted is not None:
        position = max(wanted, since())
        try:
            with _on_replica():
                if _has(position):
                    found = call()
                    READS.labels("replica").inc()
                    return found
        except NotSupportedError:
            pass  # what is left out of the log is on no replica: codes and what else a day forgets
        except (OperationalError, InterfaceError) as error:
            if not isinstance(error.__cause__, CONFLICTS):
                lag.failed(error)
    READS.labels("primary").inc()
    return call()


def _has(position: int) -> bool:
    """Return whether the replica that this thread is connected to has reached a position of the primary's log."""
    connection.ensure_connection()
    raw: Any = connection.connection
    raw.seconds = ANSWER_SECONDS
    with connection.cursor() as cursor:
        cursor.execute(_HAS, [position])
        found: Any = cursor.fetchone()
    raw.seconds = STATEMENT_SECONDS
    return bool(found[0])


def _own() -> Any:
    return getattr(_thread, "primary", None)


@contextmanager
def _on_replica() -> Iterator[None]:
    idle.begin()
    own: Any = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS], _thread.primary = connections[ALIAS], own
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS], _thread.primary = own, None
        _give_back()


def _give_back() -> None:
    raw: Any = connections[ALIAS].connection
    if raw is not None:
        raw.seconds = ANSWER_SECONDS
    connections[ALIAS].close()


@contextmanager
def primary() -> Iterator[None]:
    """Read and write on the primary until the block ends, also within `read`."""
    own = _own()
    if own is None:
        yield
        return
    connections[DEFAULT_DB_ALIAS], _thread.primary = own, None
    try:
        yield
    finally:
        idle.begin()
        connections[DEFAULT_DB_ALIAS], _thread.primary = connections[ALIAS], own
