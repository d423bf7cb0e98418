"""Django's migrate, which waits 3 s at most for a lock and says who holds it: what queues behind it would wait too.

Rule environment.migrate.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections

from config import roles
from config.lib import locks
from payments import patience

LOCK_SECONDS = 3
# In seconds. To build an index takes as long as it takes; a wait for a lock holds up all that comes after it.
LIMITS = {"lock_timeout": LOCK_SECONDS, "statement_timeout": 0, "idle_in_transaction_session_timeout": 0}
LOOK_SECONDS = 0.5  # between two looks at who is in the way
WAITED = """A migration waited {seconds} s for a lock that others hold, and was taken back:
{holders}
Nothing of it is done. Run migrate again when they are through, or once you have ended them."""
# Whoever holds what this session waits for. A statement may hold what nobody may read: its first word says enough.
HOLDERS = """
SELECT pid, application_name, state, extract(epoch FROM clock_timestamp() - xact_start)::int,
    split_part(ltrim(query), ' ', 1)
FROM pg_stat_activity WHERE pid = ANY(pg_blocking_pids(%s))
"""


class Command(migrate.Command):
    """Brings the database up to date. It takes what Django's migrate takes."""

    def execute(self, *args: Any, **options: Any) -> Any:
        """Check and migrate as the owner, then let the service's role do what it must."""
        alias = options["database"]
        with roles.as_owner(connections[alias]) as is_owner:
            done = super().execute(*args, **options)
            if is_owner:
                roles.grant(alias)
        if is_owner:
            patience.set_limits(using=alias)
        return done

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate. Raises CommandError, naming the sessions in the way, when a lock is not free in three seconds."""
        connection = connections[options["database"]]
        with _patient(connection) as pid, _watched(connection, pid) as holders:
            try:
                super().handle(*args, **options)
            except OperationalError as error:
                if not locks.is_locked(error):
                    raise
                told = "\n".join(f"  {line}" for line in holders) or "  nobody who is still there"
                raise CommandError(WAITED.format(seconds=LOCK_SECONDS, holders=told)) from None


@contextlib.contextmanager
def _patient(connection: Any) -> Iterator[int]:
    """Give the session limits that suit a migration, until the block ends; yield its process id."""
    with connection.cursor() as cursor:
        for name, limit in LIMITS.items():
            cursor.execute(f"SET {name} = '{limit}s'")
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    try:
        yield pid
    finally:
        with connection.cursor() as cursor:
            for name in LIMITS:
                cursor.execute(f"RESET {name}")


@contextlib.contextmanager
def _watched(connection: Any, pid: int) -> Iterator[list[str]]:
    """Look over a connection of its own at who is in the way of a session; yield their last list, kept up to date."""
    holders: list[str] = []
    ended = threading.Event()

    def look() -> None:
        with contextlib.suppress(psycopg.Error), _another(connection) as other:
            while not ended.wait(LOOK_SECONDS):
                if found := other.execute(HOLDERS, [pid]).fetchall():
                    holders[:] = [_in_words(*row) for row in found]

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield holders
    finally:
        ended.set()
        thread.join()


def _another(connection: Any) -> "psycopg.Connection[Any]":
    wanted = {**connection.get_connection_params(), "application_name": "checkout-migrate-watch"}
    known = ("dbname", "user", "password", "host", "port", "application_name")
    return psycopg.connect(**{name: wanted[name] for name in known if wanted.get(name)}, autocommit=True)


def _in_words(pid: int, name: str, state: str, seconds: int | None, word: str) -> str:
    return f"{name or 'a session'} (pid {pid}), {state}, in a transaction for {seconds or 0} s, last: {word}"
