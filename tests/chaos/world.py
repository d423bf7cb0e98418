"""The whole service as processes that tests can break one by one: web, two workers, beat and bank.

The bank is a separate process with its own database. If a process dies, a supervisor starts it again.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from config.lib import failpoint
from config.local import engines, environment
from tests import template
from tests.journeys import service
from tests.journeys.deployment import Deployment, Part
from tests.journeys.service import Service

LOOK_SECONDS = 0.1
BACK_WITHIN = 60.0
# The machine itself does not crash, so fsync is off. However, commits must survive a crash of PostgreSQL.
COMMIT_FIRST = """
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = on', current_database()); END $$
"""
CHARGES = """
SELECT c.payment::text, c.state, CASE c.state WHEN 'captured' THEN c.amount - c.refunded_amount ELSE 0 END,
    (SELECT count(*) FROM bank_call l WHERE l.charge_id = c.id AND l.kind = 'capture' AND l.verdict = 'succeeded')
FROM bank_charge c WHERE c.account = %s
"""
FREE_OF_LIMITS = dict.fromkeys(("LIMIT_READS", "LIMIT_CREATES", "LIMIT_VERBS"), "100000/second")


class Charge(NamedTuple):
    """The bank's record of a payment: its state, the net amount that was paid, and the number of captures."""

    payment: str
    state: str
    borne: int
    captures: int


class World(Deployment):
    """A deployment with two workers and a supervisor.

    `books` has the database engines of the sandbox bank, if the world has this bank.
    """

    def __init__(
        self,
        folder: Path,
        own: engines.Engines,
        variables: Mapping[str, str],
        books: engines.Engines | None = None,
    ) -> None:
        super().__init__(folder, own, variables)
        self.books = books
        self._points = Path(variables["FAIL_POINTS"])
        self.parts["second worker"] = self.parts["worker"]
        if books is not None:
            self.parts["bank"] = _bank(variables, books)
        self.alone = threading.Lock()  # held during a fault that must not overlap with another such fault
        # This thread starts Redis, because Redis ends when the thread that started it ends.
        self._keeper = ThreadPoolExecutor(1)
        self._is_over = threading.Event()
        self._changing = threading.Lock()
        self._connections = threading.local()
        self._stopped: set[str] = set()
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)

    def fill(self) -> None:
        super().fill()
        self.rows(COMMIT_FIRST)
        if self.books is not None:
            self.rows(COMMIT_FIRST, of_bank=True)

    def make_whole(self) -> None:
        super().make_whole()
        if not self._supervisor.is_alive():
            self._supervisor.start()

    def kill(self, part: str) -> None:
        """Kill a part while it is working. The supervisor starts it again."""
        with self._changing:
            if part in self._running:
                super().kill(part)

    def freeze(self, part: str) -> None:
        """Pause a part with SIGSTOP."""
        self._signal(part, signal.SIGSTOP)

    def thaw(self, part: str) -> None:
        self._signal(part, signal.SIGCONT)

    def _signal(self, part: str, number: signal.Signals) -> None:
        with self._changing, contextlib.suppress(ProcessLookupError, KeyError):
            os.killpg(self._running[part].pid, number)

    def keep_dead(self, part: str) -> None:
        """Kill a part. Keep the supervisor from starting it again until `release_part`."""
        self._stopped.add(part)
        self.kill(part)

    def release_part(self, part: str) -> None:
        self._stopped.discard(part)

    def _supervise(self) -> None:
        """Start the parts that have died."""
        while not self._is_over.wait(LOOK_SECONDS):
            with self._changing:
                for part, process in list(self._running.items()):
                    if process.poll() is not None:
                        super().kill(part)
                for part in set(self.parts) - set(self._running) - self._stopped:
                    self.start(part)

    def start_redis(self) -> None:
        """Start the Redis that `stop_redis` stopped, from any thread."""
        self._keeper.submit(self.engines.start_redis).result()
        self._is_redis_whole = True

    def crash_postgres(self) -> None:
        """Kill one PostgreSQL process, so that the server ends all others and recovers from its log."""
        with psycopg.connect(self.engines.database_url) as connection:
            os.kill(connection.info.backend_pid, signal.SIGKILL)

    def arm(self, point: str, effect: str) -> None:
        """Choose what happens to the next process that reaches the fail point: kill, raise, or sleep 3 (seconds)."""
        assert point.partition(".")[0] in failpoint.POINTS
        fresh = self._points / f".{point}.new"
        fresh.write_text(effect)
        fresh.rename(self._points / point)

    def is_armed(self, point: str) -> bool:
        """Return whether the fail point is still set, because no process has reached it yet."""
        return (self._points / point).exists()

    def disarm(self, point: str) -> bool:
        """Remove the fail point. Return whether it was still set, because no process had reached it."""
        with contextlib.suppress(FileNotFoundError):
            (self._points / point).unlink()
            return True
        return False

    def restart(self, part: str, **more: str) -> None:
        """Restart a part with additional variables. Variables from an earlier restart are dropped."""
        self.keep_dead(part)
        self.parts[part] = Part(self.parts[part].command, self.variables | more)
        self.release_part(part)

    def rows(self, statement: str, *parameters: Any, of_bank: bool = False) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows, for facts that no API returns. Retry while PostgreSQL is down."""
        url = (self.books if of_bank and self.books else self.engines).database_url
        end = time.monotonic() + BACK_WITHIN
        while True:
            try:
                cursor = self._connection_to(url).execute(statement, parameters or None)
                return cursor.fetchall() if cursor.description else []
            except psycopg.OperationalError:
                self._connections.of_thread.pop(url, None)
                if time.monotonic() > end:
                    raise
                time.sleep(LOOK_SECONDS)

    def _connection_to(self, url: str) -> "psycopg.Connection[tuple[Any, ...]]":
        """Return this thread's connection. It is reused, because PostgreSQL needs a process for each connection."""
        opened: dict[str, psycopg.Connection[tuple[Any, ...]]] = self._connections.__dict__.setdefault(
            "of_thread", {}
        )
        if url not in opened:
            opened[url] = psycopg.connect(url, autocommit=True)
        return opened[url]

    def charges(self, merchant_uuid: str) -> list[Charge]:
        """Return the bank's records of a merchant's payments."""
        return [Charge(*row) for row in self.rows(CHARGES, merchant_uuid, of_bank=True)]

    def broken_keys(self) -> list[str]:
        """Return the idempotency keys for which the bank always returns the same server error."""
        return [row[0] for row in self.rows("SELECT key::text FROM bank_brokenkey", of_bank=True)]

    def set_fault(self, verb: str, mode: str, times: int) -> None:
        """Make the bank fail the next `times` calls of the verb."""
        statement = "INSERT INTO bank_fault (id, verb, mode, times) VALUES (gen_random_uuid(), %s, %s, %s)"
        self.rows(statement, verb, mode, times, of_bank=True)

    def end_faults(self, verb: str) -> None:
        self.rows("DELETE FROM bank_fault WHERE verb = %s", verb, of_bank=True)

    def end(self) -> None:
        self._is_over.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        super().end()
        self._keeper.shutdown()


def _bank(variables: Mapping[str, str], books: engines.Engines) -> Part:
    own = {name: text for name, text in variables.items() if name not in ("BANK_URL", "FAIL_POINTS")}
    own |= {"DATABASE_URL": books.database_url, "DATABASE_POOL": "40"}
    return Part((sys.executable, "-m", "gunicorn", "--config", "python:tests.bank.process"), own)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[tuple[World, Service]]:
    """For the duration of the block, run the world, and the helper process that runs commands in it."""
    template.copy_to(folder)
    template.copy_to(folder / "bank")
    port, bank_port = service.free_ports()
    shop_port, _ = service.free_ports()
    points = folder / "points"
    points.mkdir()
    more = {"BANK_PORT": bank_port, "BANK_URL": f"http://127.0.0.1:{bank_port}", "FAIL_POINTS": str(points)}
    more["DJANGO_SETTINGS_MODULE"] = "tests.bank.settings"
    given = service.bare_environment(PORT=port, SHOP_PORT=shop_port, **more, **FREE_OF_LIMITS)
    variables = environment.variables_of_run(given, folder) | {"SANDBOX_REFUND_SECONDS": "1"}
    with (
        engines.running(folder, durable=False) as own,
        engines.running(folder / "bank", durable=False, redis_url=own.redis_url) as books,
    ):
        variables |= {"DATABASE_URL": own.database_url, "REDIS_URL": own.redis_url}
        world = World(folder, own, variables, books)
        world.fill()
        try:
            world.make_whole()
            with service.clerk(variables) as helper:
                yield world, Service(variables["BASE_URL"], "", helper)
        finally:
            world.end()
