"""The database engine that settings.DATABASES names."""

import select
import time
from functools import cache
from typing import Any

import orjson
import psycopg
from django.db.backends.postgresql import base
from psycopg.adapt import AdaptersMap
from psycopg.types.datetime import TimestamptzLoader
from psycopg.types.json import set_json_loads
from psycopg_pool import ConnectionPool, PoolTimeout

set_json_loads(orjson.loads)
SURE_SECONDS = 1.0  # how long a checked connection counts as alive, unless its socket shows otherwise


class DatabaseWrapper(base.DatabaseWrapper):
    """A database wrapper that takes a living connection from the pool, without a query to PostgreSQL for it.

    A server that ends a connection hangs up or sends a message, and the socket shows this at once. A server
    that is gone without a message is found by a query, which is sent after a second without use.

    psycopg's own loader, in C, reads timestamps. Django replaces it by one in Python, for time zones other
    than the connection's, and checks it again with each cursor. Our connections only use UTC.
    """

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        return params | {"context": _with_own_timestamps(params["context"])}

    def create_cursor(self, name: str | None = None) -> Any:
        return super().create_cursor(name) if name else self.connection.cursor()

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if not self.pool:
            return super().get_new_connection(conn_params)
        until = time.monotonic() + self.pool.timeout
        while time.monotonic() < until:
            connection = super().get_new_connection(conn_params)
            if _is_alive(connection):
                return connection
            connection.close()
            self.pool.putconn(connection)
        raise PoolTimeout("No connection that was taken from the pool has lived.")


@cache
def _with_own_timestamps(adapters: AdaptersMap) -> AdaptersMap:
    own = AdaptersMap(adapters)
    own.register_loader("timestamptz", TimestamptzLoader)
    return own


def _is_alive(connection: Any) -> bool:
    now = time.monotonic()
    is_sure = now < getattr(connection, "sure_until", 0.0) and not _has_word(connection)
    if not is_sure:
        try:
            ConnectionPool.check_connection(connection)
        except psycopg.Error:
            return False
    connection.sure_until = now + SURE_SECONDS
    return True


def _has_word(connection: Any) -> bool:
    """Return whether the server has sent data without a query. Usually this is the connection's end."""
    watch = select.poll()
    watch.register(connection.fileno(), select.POLLIN)
    return bool(watch.poll(0))
