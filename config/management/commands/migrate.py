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
from django.db import OperationalError, connections, transaction
from django.db.migrations import Migration

from config import roles
from config.lib import locks
from config.lib.database import limits

LOCK_SECONDS = 3
# In seconds. To build an index takes as long as it takes; a wait for a lock holds up all that comes after it.
LIMITS = {"lock_timeout": LOCK_SECONDS, "statement_timeout": 0, "idle_in_transaction_session_timeout": 0}
LOOK_SECONDS = 0.5  # between two looks at who is in the way
WAITED = """{what} waited {seconds} s for a lock that others hold, and {became}:
{holders}
{left} Run migrate again when they are through, or once you have ended them."""
TAKEN_BACK = {"became": "was taken back", "left": "Nothing of it is done."}
BROKE_OFF = {
    "became": "broke off",
    "left": "What it had finished stays, and the next run goes on from there.",
}
# Whoever holds what this session waits for. A statement may hold what nobody may read: its first word says enough.
HOLDERS = """
SELECT pid, application_name, state, extract(epoch FROM clock_timestamp() - xact_start)::int,
    split_part(ltrim(query), ' ', 1)
FROM pg_stat_activity WHERE pid = ANY(pg_blocking_pids(%s))
"""


class Command(migrate.Command):
    """Brings the database up to date. It takes what Django's migrate takes."""

    _under_way: Migration | None = None

    def execute(self, *args: Any, **options: Any) -> Any:
        """Check and migrate as the owner, then let the service's role do what it must."""
        connection = connections[options["database"]]
        with roles.as_owner(connection) as is_owner:
            done = super().execute(*args, **options)
            if is_owner:
                with self._in_time(connection):
                    roles.grant(connection.alias)
        if is_owner:  # in a transaction: the service's own connection may be a pooler's
            with transaction.atomic(connection.alias), self._in_time(connection):
                limits.set_limits(using=connection.alias)
        return done

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate. Raises CommandError, naming the sessions in the way, when a lock is not free in three seconds."""
        with self._in_time(connections[options["database"]]):
            super().handle(*args, **options)

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:
        """Remember which migration is under way, from its start to its success."""
        if action in ("apply_start", "unapply_start"):
            self._under_way = migration
        elif migration is not None:
            self._under_way = None
        super().migration_progress_callback(action, migration, fake)

    @contextlib.contextmanager
    def _in_time(self, connection: Any) -> Iterator[None]:
        """Give the block's statements the limits of a migration; what waited too long is said by CommandError."""
        with _patient(connection) as pid, _watched(connection, pid) as holders:
            try:
                yield
            except OperationalError as error:
                if not locks.is_locked(error):
                    raise
                raise CommandError(self._told(holders)) from None

    def _told(self, holders: list[str]) -> str:
        became = TAKEN_BACK if self._under_way and self._under_way.atomic else BROKE_OFF
        found = "\n".join(f"  {line}" for line in holders) or "  nobody who is still there"
        what = str(self._under_way or "migrate")
        return WAITED.format(what=what, seconds=LOCK_SECONDS, holders=found, **became)


@contextlib.contextmanager
def _patient(connection: Any) -> Iterator[int]:
    """Give the session, or its transaction, the limits of a migration until the block ends; yield its process id."""
    is_session = not connection.in_atomic_block
    with connection.cursor() as cursor:
        for name, limit in LIMITS.items():
            cursor.execute(f"SET {'SESSION' if is_session else 'LOCAL'} {name} = '{limit}s'")
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    try:
        yield pid
    finally:
        if is_session:
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


def _in_words(pid: int, name: str, state: str | None, seconds: int | None, word: str) -> str:
    who = f"{name or 'a session'} (pid {pid})"
    if state is None:  # without pg_read_all_stats a role sees no more of another's
        return f"{who}, of another role"
    return f"{who}, {state}, in a transaction for {seconds or 0} s, last: {word}"
