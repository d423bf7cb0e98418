"""Starts the processes that every measurement needs: durable PostgreSQL and Valkey, a receiver, an emitter, workers."""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from config.deploy import make_env
from config.local import engines, environment, run
from tests.bench.webhooks.processes import ROOT, Clerk, Worker

# Only these variables are inherited, because others could be settings of another run.
INHERITED = ("PATH", "HOME", "TMPDIR", "LANG")
UNLIMITED = "999999/second"
Arrival = tuple[str, int, int]  # event, nanoseconds since the epoch, endpoint


@dataclass(frozen=True)
class Stage:
    """The running processes of a measurement. For a trial, `scale` makes the measurement smaller."""

    folder: Path
    variables: Mapping[str, str]
    command: Sequence[str]
    receiver: Clerk
    emitter: Clerk
    ports: Sequence[int]
    scale: float

    @contextlib.contextmanager
    def worker(self, name: str = "worker") -> Iterator[Worker]:
        """Run a worker process as in `make run`, for the duration of the block."""
        worker = Worker(self.command, self.variables, self.folder / f"{name}.log")
        try:
            yield worker
        finally:
            worker.stop()

    @contextlib.contextmanager
    def clerk(self, module: str, name: str, **variables: str) -> Iterator[Clerk]:
        clerk = Clerk(module, {**self.variables, **variables}, self.folder / f"{name}.log")
        try:
            yield clerk
        finally:
            clerk.end()

    def addresses(self, endpoints: Sequence[int]) -> list[str]:
        return [f"https://localhost:{self.ports[number]}/{number}" for number in endpoints]

    def scaled(self, count: int, *, minimum: int = 1) -> int:
        return max(minimum, round(count * self.scale))

    def arrivals(self) -> list[Arrival]:
        return [(event, at, endpoint) for event, at, endpoint in self.receiver.ask("arrivals")]

    def await_arrivals(self, worker: Worker, count: int, *, within: float) -> None:
        """Wait until `count` requests have arrived since the receiver's log was last reset."""
        worker.until(
            lambda: self.receiver.ask("count") >= count,
            within=within,
            what=f"the arrival of {count} requests",
        )


@contextlib.contextmanager
def ready(folder: Path, *, endpoints: int, scale: float) -> Iterator[Stage]:
    """Start all processes with a migrated, empty database. Set this process's environment for them."""
    make_env.write(folder, "localhost")
    certificate, key = (str(folder / ".tls" / name) for name in ("public.pem", "private.pem"))
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    given = kept | {"SSL_CERT_FILE": certificate, "LIMIT_READS": UNLIMITED}
    variables = environment.variables_of_run(given, folder)
    with engines.running(folder, durable=True) as own, contextlib.ExitStack() as stack:
        variables |= {"DATABASE_URL": own.database_url, "REDIS_URL": own.redis_url}
        plan = run.plan(folder, variables["PORT"])
        subprocess.run(plan.seed, env=variables, cwd=ROOT, check=True)
        # There is no connection pool, because a database with open connections cannot be copied.
        os.environ.update(variables | {"DJANGO_SETTINGS_MODULE": "config.settings", "DATABASE_POOL": "0"})
        receiver = Clerk("receiver", variables, folder / "receiver.log", certificate, key)
        stack.callback(receiver.end)
        ports = receiver.ask("open", count=endpoints)
        emitter = Clerk("emitter", variables, folder / "emitter.log")
        stack.callback(emitter.end)
        yield Stage(folder, variables, plan.services["worker"], receiver, emitter, ports, scale)
