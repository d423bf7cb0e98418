"""Web, worker and beat as separate processes, called parts, with a separate PostgreSQL and Redis.

A test can kill or stop any of these without affecting other tests.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import redis
import requests

from config.local import children, engines, environment, run
from tests import pooler, template
from tests.journeys import polling, service
from tests.journeys.service import ROOT, Service

PARTS = ("web", "worker", "beat")
# How many seconds a silent Redis does not answer: longer than any test. A restart of Redis ends the silence early.
SILENT_SECONDS = 600


class Part(NamedTuple):
    """How to start a process of the deployment: its command, environment variables and working folder."""

    command: Sequence[str]
    variables: Mapping[str, str]
    folder: Path = ROOT


class Deployment:
    """A service that tests may damage. It runs the commands of `make run` as separate processes.

    When the thread that started a process ends, the process ends too.
    """

    def __init__(self, folder: Path, own: engines.Engines, variables: Mapping[str, str]) -> None:
        self.engines = own
        self.variables = dict(variables)
        plan = run.plan(folder, variables["PORT"])
        self.seed = plan.seed
        self.parts = {name: Part(plan.services[name], self.variables) for name in PARTS}
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._is_redis_whole = True

    def fill(self) -> None:
        """Migrate the database and create its first merchants."""
        subprocess.run(self.seed, env=self.variables, cwd=ROOT, check=True, capture_output=True)

    def start(self, part: str) -> None:
        """Start a part with a new log file."""
        path = self._folder / f"{part}.log"
        if path.exists():
            path.rename(self._folder / f"{part}.until-{time.time_ns()}.log")
        with open(path, "wb") as log:
            self._running[part] = subprocess.Popen(
                children.tie_to_parent(self.parts[part].command, by=signal.SIGKILL),
                env=self.parts[part].variables,
                cwd=self.parts[part].folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self, part: str) -> None:
        """Kill the process of a part, and its child processes, with SIGKILL."""
        process = self._running.pop(part)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self, part: str) -> None:
        """Stop a part with SIGTERM, and wait until it has ended."""
        process = self._running.pop(part)
        process.terminate()
        process.wait(40)

    def ended(self, part: str, *, within: float) -> int:
        """Wait until the process of a part ends without being stopped, and return its exit code."""
        return self._running.pop(part).wait(within)

    def stop_redis(self) -> None:
        self._is_redis_whole = False
        self.engines.stop_redis()

    def silence_redis(self) -> None:
        """Make Redis accept connections and commands, but never answer."""
        self._is_redis_whole = False
        with redis.Redis.from_url(self.engines.redis_url) as connection:
            connection.client_pause(SILENT_SECONDS * 1000)

    def flush_redis(self) -> None:
        with redis.Redis.from_url(self.engines.redis_url) as connection:
            connection.flushall()

    def one_row(self, statement: str, *parameters: str) -> Any:
        """Run an SQL statement, and return its only row. Tests use it for data that no API shows."""
        with psycopg.connect(self.engines.database_url) as connection:
            (row,) = connection.execute(statement, parameters).fetchall()
        return row

    def restart_all(self, variables: Mapping[str, str], **of_part: Mapping[str, str]) -> None:
        """Restart all parts with additional environment variables. Return when all of them answer.

        All parts get `variables`. `of_part` maps the name of a part to further variables for this part only.
        """
        for name, part in list(self.parts.items()):
            self.kill(name)
            more = {**variables, **of_part.get(name, {})}
            self.parts[name] = part._replace(variables={**part.variables, **more})
        self.make_whole()

    def make_whole(self) -> None:
        """Start the parts that are not running, and repair Redis. Return when web and worker answer."""
        if not self._is_redis_whole:
            self.engines.stop_redis()
            self.engines.start_redis()
            self._is_redis_whole = True
        for part in self.parts:
            if part not in self._running:
                self.start(part)
        polling.until(self.is_ready, within=60, what="web and worker")

    def is_ready(self) -> bool:
        """Return whether web and worker answer. Web is asked directly, because the proxy does not pass on /readyz."""
        with contextlib.suppress(requests.RequestException):
            answer = requests.get(f"http://127.0.0.1:{self.variables['PORT']}/readyz", timeout=5)
            return answer.status_code == 200 and b" ready." in (self._folder / "worker.log").read_bytes()
        return False

    def group(self, part: str) -> int:
        """Return the id of the process group of a running part. The group contains the part's child processes."""
        return self._running[part].pid

    def are_alive(self) -> bool:
        """Return whether all parts that were started are still running."""
        return all(process.poll() is None for process in self._running.values())

    def end(self) -> None:
        for process in self._running.values():
            process.terminate()
        for part in list(self._running):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._running[part].wait(10)
            self.kill(part)


@contextlib.contextmanager
def running(folder: Path, postgres: Mapping[str, str] | None = None) -> Iterator[tuple[Deployment, Service]]:
    """Run a deployment for the duration of the block, with a clerk process for manage.py commands.

    `postgres` has additional settings for PostgreSQL.
    """
    template.copy_to(folder)
    with (folder / template.CLUSTER / "postgresql.auto.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in (postgres or {}).items())
    port, shop_port = service.free_ports()
    variables = environment.variables_of_run(service.bare_environment(PORT=port, SHOP_PORT=shop_port), folder)
    with (
        engines.running(folder, durable=False) as own,
        pooler.in_front_of(own.database_url, folder) as database_url,
    ):
        # If the tests use PgBouncer, they use its configuration without prepared statements.
        may_prepare = database_url == own.database_url
        variables |= {"DATABASE_URL": database_url, "DATABASE_PREPARE": str(may_prepare).lower()}
        variables["REDIS_URL"] = own.redis_url
        deployment = Deployment(folder, own, variables)
        deployment.fill()
        try:
            deployment.make_whole()
            with service.clerk(variables) as helper:
                yield deployment, Service(variables["BASE_URL"], "", helper)
        finally:
            deployment.end()
