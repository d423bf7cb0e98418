"""A fleet: only workers and beats, and a PostgreSQL server that can be stopped without a clean shutdown.

A test starts and breaks each process separately.
"""

import contextlib
import os
import re
import signal
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from config.local import engines, environment, servers
from tests import template
from tests.chaos.world import COMMIT_FIRST, World
from tests.journeys import polling, service
from tests.journeys.deployment import Part
from tests.journeys.service import ROOT

START_SECONDS = 60
END_SECONDS = 20  # a worker must finish its requests and end within this time
# These environment variables give a process a wrong time of day, but a correct monotonic clock.
WRONG_CLOCK = {"DONT_FAKE_MONOTONIC": "1", "PYTHONPATH": f"{ROOT / 'tests' / 'chaos' / 'clock_off'}:{ROOT}"}


class Fleet(World):
    """A world whose parts a test starts one by one. It has no web, no bank and no supervisor."""

    def __init__(
        self, folder: Path, own: engines.Engines, variables: Mapping[str, str], postgres: servers.Server
    ) -> None:
        super().__init__(folder, own, variables, own)
        self._postgres = postgres
        worker, beat = self.parts["worker"], self.parts["beat"]
        second = [
            text if text != str(folder / "beat") else str(folder / "second-beat") for text in beat.command
        ]
        self.parts = {"beat": beat, "second beat": Part(second, beat.variables)}
        self._worker = worker

    def fill(self) -> None:
        """Prepare the database. It has no merchants, because the tests create them."""
        self.rows(COMMIT_FIRST)

    def make_whole(self) -> None:
        """Stop and start processes until exactly two workers and a beat are running."""
        self.mend_redis()
        for name, process in list(self._running.items()):
            self.thaw(name)
            if name not in ("one", "two", "beat") or process.poll() is not None:
                self.kill(name)
        if "beat" not in self._running:
            self.start("beat")
        self.start_workers(*({"one", "two"} - set(self._running)))

    def mend_redis(self) -> None:
        if not self._is_redis_whole:
            self.engines.stop_redis()
            self.engines.start_redis()
            self._is_redis_whole = True

    def start_workers(self, *names: str, clock: str = "") -> None:
        """Start workers with these names. Return when they are ready.

        `clock` is the error of the workers' clocks, such as +30s.
        """
        wrong = ("faketime", "-f", clock) if clock else ()
        changed = WRONG_CLOCK if clock else {}
        for name in names:
            self.parts[name] = Part((*wrong, *self._worker.command), {**self._worker.variables, **changed})
            self.start(name)
        for name in names:
            polling.until(partial(self._is_ready, name), within=START_SECONDS, what=f"{name} ready")

    def _is_ready(self, name: str) -> bool:
        return b" ready." in (self._folder / f"{name}.log").read_bytes()

    def seconds_ahead(self, name: str) -> float:
        """Return how many seconds a worker's clock is ahead, according to the latest line of its log."""
        log = (self._folder / f"{name}.log").read_text()
        latest = re.findall(r"timestamp='([^']+)'", log)[-1]
        return (datetime.fromisoformat(latest) - datetime.now(UTC)).total_seconds()

    def retire(self, name: str) -> int:
        """Ask a worker to end, as a deployment would. Return its exit code."""
        process = self._running.pop(name)
        process.terminate()
        return process.wait(END_SECONDS)

    def kill_all(self) -> None:
        for name in list(self._running):
            self.thaw(name)
            self.kill(name)

    def stop_postgres(self) -> None:
        """Stop PostgreSQL without a clean shutdown, as if its machine had crashed."""
        pid_file = self._folder / "engine" / "postgres" / "postmaster.pid"
        os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGQUIT)
        self._postgres.stop()

    def start_postgres(self) -> None:
        self._postgres.start()


@contextlib.contextmanager
def _postgres(folder: Path) -> Iterator[tuple[servers.Server, str]]:
    """Yield a PostgreSQL server and its address."""
    with tempfile.TemporaryDirectory(prefix="checkout-") as sockets, (folder / "lock").open("w") as lock:
        server = servers.postgres(servers.ServerFolders(folder, Path(sockets), lock.fileno(), durable=False))
        server.start()
        try:
            yield server, f"postgresql://checkout@/checkout?host={sockets}"
        finally:
            server.stop()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Fleet]:
    """Run a fleet without workers for the duration of the block."""
    template.copy_to(folder / "engine")
    port, shop_port = service.free_ports()
    points = folder / "points"
    points.mkdir()
    given = service.bare_environment(PORT=port, SHOP_PORT=shop_port, FAIL_POINTS=str(points))
    variables = environment.variables_of_run(given, folder / "engine")
    with (
        _postgres(folder / "engine") as (postgres, database_url),
        engines.running(folder, durable=False, database_url=database_url) as own,
    ):
        variables |= {"DATABASE_URL": own.database_url, "REDIS_URL": own.redis_url}
        fleet = Fleet(folder, own, variables, postgres)
        fleet.fill()
        try:
            yield fleet
        finally:
            fleet.kill_all()
