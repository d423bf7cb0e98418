"""Reads from the replica. A query runs there only if its code requests it and the replica is usable.

While `read_on_replica` runs a function, this thread's default connection is a connection to the replica. All
queries through the ORM and in raw SQL use it, and PostgreSQL refuses writes. Other code can therefore not
read from the replica by mistake, and the same function can run on the primary instead. Rules replica.*.
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

from config.lib import connection_release
from config.lib.database import lag, queries, statements
from config.lib.database.bounded_connection import ANSWER_SECONDS, STATEMENT_SECONDS
from config.lib.database.lag import ALIAS

Read = TypeVar("Read")
View = TypeVar("View", bound=Callable[..., Any])
READS = Counter("checkout_replica_reads_total", "Pages and parts of files that a replica may serve", ["by"])
# Errors of a query that conflicts with the replay of the log. The replica still works after such an error.
CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
READ_METHODS = frozenset({"GET", "HEAD"})
_thread = threading.local()  # `primary`: the primary's connection while the replica's is the default


def readable(view: View) -> View:
    """Mark a view whose data can be slightly old, so that it is called through `read_on_replica`."""
    view.is_readable = True  # type: ignore[attr-defined]  # ours
    return view


def may_read(view: Any, method: str | None) -> bool:
    """Return whether the replica may serve a request with this method to the view."""
    return method in READ_METHODS and getattr(view, "is_readable", False)


def read_on_replica(call: Callable[[], Read], *, since: Callable[[], int] = int) -> Read:
    """Call the function on the replica if the replica's data is recent enough, else on the primary.

    `since` returns a position in the primary's log that the replica must have reached.

    If the replica fails during the call, the function is called again on the primary. The function must
    therefore only read. In a transaction, or inside another `read_on_replica`, it runs on the current
    connection.
    """
    if ALIAS not in connections.settings or _primary_connection() is not None or connection.in_atomic_block:
        return call()
    required = lag.required_position()
    if required is not None:
        position = max(required, since())
        try:
            with _on_replica():
                if _has_reached(position):
                    result = call()
                    READS.labels("replica").inc()
                    return result
        except NotSupportedError:
            pass  # a replica cannot read unlogged tables, such as the table with the sign-in codes
        except (OperationalError, InterfaceError) as error:
            if not isinstance(error.__cause__, CONFLICTS):
                lag.stop_reads(error)
    READS.labels("primary").inc()
    return call()


def _has_reached(position: int) -> bool:
    """Return whether the replica has reached a position of the primary's log."""
    connection.ensure_connection()
    raw: Any = connection.connection
    raw.seconds = ANSWER_SECONDS
    has_replayed = queries.value(statements.HAS_REPLAYED, [position])
    raw.seconds = STATEMENT_SECONDS
    return bool(has_replayed)


def _primary_connection() -> Any:
    return getattr(_thread, "primary", None)


@contextmanager
def _on_replica() -> Iterator[None]:
    connection_release.release()
    primary: Any = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS], _thread.primary = connections[ALIAS], primary
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS], _thread.primary = primary, None
        _release_replica()


def _release_replica() -> None:
    raw: Any = connections[ALIAS].connection
    if raw is not None:
        raw.seconds = ANSWER_SECONDS
    connections[ALIAS].close()


@contextmanager
def use_primary() -> Iterator[None]:
    """Read from and write to the primary for the duration of the block, even inside `read_on_replica`."""
    primary = _primary_connection()
    if primary is None:
        yield
        return
    connections[DEFAULT_DB_ALIAS], _thread.primary = primary, None
    try:
        yield
    finally:
        connection_release.release()
        connections[DEFAULT_DB_ALIAS], _thread.primary = connections[ALIAS], primary
