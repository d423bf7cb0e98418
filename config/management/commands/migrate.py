"""Django's migrate command, with a limit of 3 s for each wait for a lock.

Other sessions queue behind a migration that waits for a lock, so a long wait would stop the service. If a
wait times out, the error names the sessions that hold the lock. Rules environment.migrate,
environment.migrations.
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

from config import roles, statements
from config.lib import locks
from config.lib.database import limits

LOCK_SECONDS = 3
# In seconds; 0 means no limit. Statements have no limit, because an index can take long to build. Only the wait
# for a lock has a limit, because other sessions queue behind the waiting migration.
LIMITS = {"lock_timeout": LOCK_SECONDS, "statement_timeout": 0, "idle_in_transaction_session_timeout": 0}
CHECK_SECONDS = 0.5  # the pause between two checks for the sessions that hold the lock
WAITED_TOO_LONG = """{what} waited {seconds} s for a lock that these sessions hold, and {became}:
{holders}
{left} Run migrate again when these sessions have ended, or end them."""
ROLLED_BACK = {"became": "was rolled back", "left": "The migration changed nothing."}
STOPPED_PARTWAY = {
    "became": "was stopped",
    "left": "The finished steps remain, and the next run continues from there.",
}


class Command(migrate.Command):
    """The `migrate` command. It takes the same arguments as Django's."""

    _under_way: Migration | None = None

    def execute(self, *args: Any, **options: Any) -> Any:
        """Migrate as the owner of the tables, then set the privileges and limits of the service's role."""
        connection = connections[options["database"]]
        with roles.as_owner(connection) as is_owner:
            done = super().execute(*args, **options)
            if is_owner:
                with self._in_time(connection):
                    roles.grant(connection.alias)
        # The transaction is necessary, because the service's connection can go through a pooler.
        if is_owner:
            with transaction.atomic(connection.alias, durable=True), self._in_time(connection):
                limits.set_limits(using=connection.alias)
        return done

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the migrations.

        Raises CommandError if a lock is not free within three seconds. The error names the sessions that hold
        the lock.
        """
        with self._in_time(connections[options["database"]]):
            super().handle(*args, **options)

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:
        """Remember which migration is running, from its start until it succeeds."""
        if action in ("apply_start", "unapply_start"):
            self._under_way = migration
        elif migration is not None:
            self._under_way = None
        super().migration_progress_callback(action, migration, fake)

    @contextlib.contextmanager
    def _in_time(self, connection: Any) -> Iterator[None]:
        """Run the block with a migration's limits. Raises CommandError if it waits too long for a lock."""
        with _migration_limits(connection) as pid, _watch_blockers(connection, pid) as holders:
            try:
                yield
            except OperationalError as error:
                if not locks.is_locked(error):
                    raise
                raise CommandError(self._told(holders)) from None

    def _told(self, holders: list[str]) -> str:
        became = ROLLED_BACK if self._under_way and self._under_way.atomic else STOPPED_PARTWAY
        found = "\n".join(f"  {line}" for line in holders) or "  (these sessions have ended)"
        what = str(self._under_way or "migrate")
        return WAITED_TOO_LONG.format(what=what, seconds=LOCK_SECONDS, holders=found, **became)


@contextlib.contextmanager
def _migration_limits(connection: Any) -> Iterator[int]:
    """Apply the time limits of a migration for the duration of the block, and yield the session's process id.

    If the session is in a transaction, the limits apply only to the transaction.
    """
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
def _watch_blockers(connection: Any, pid: int) -> Iterator[list[str]]:
    """Yield a list of the sessions that block the session `pid`.

    A thread with a separate connection keeps the list up to date. When no session blocks, the list keeps its
    last content.
    """
    holders: list[str] = []
    ended = threading.Event()

    def look() -> None:
        with contextlib.suppress(psycopg.Error), _second_connection(connection) as other:
            while not ended.wait(CHECK_SECONDS):
                if found := other.execute(statements.FIND_BLOCKING_SESSIONS, [pid]).fetchall():
                    holders[:] = [_in_words(*row) for row in found]

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield holders
    finally:
        ended.set()
        thread.join()


def _second_connection(connection: Any) -> "psycopg.Connection[Any]":
    parameters = {**connection.get_connection_params(), "application_name": "checkout-migrate-watch"}
    known = ("dbname", "user", "password", "host", "port", "application_name")
    return psycopg.connect(
        **{name: parameters[name] for name in known if parameters.get(name)}, autocommit=True
    )


def _in_words(pid: int, name: str, state: str | None, seconds: int | None, word: str) -> str:
    session = f"{name or 'a session'} (pid {pid})"
    if state is None:  # a role without pg_read_all_stats cannot see the state of other roles' sessions
        return f"{session}, of another role"
    return f"{session}, {state}, in a transaction for {seconds or 0} s, last: {word}"
