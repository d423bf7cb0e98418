"""The service with a separate sandbox bank, and with a PostgreSQL server that archives its write-ahead log.

A test can destroy the data of this server, and then restore the database from a backup and the archive.
"""

import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import requests

from config.local import engines, environment, servers
from tests import template
from tests.config.deploy import pages
from tests.journeys import polling, service
from tests.journeys.deployment import Deployment, Part
from tests.journeys.service import Service

# The tests run the commands of this page of the docs, but with paths that exist on this machine.
PAGE = "operate.md"
RESTORED_TO = re.compile(r"recovery_target_time = '.*'")
CHARGES = """
SELECT c.payment::text, c.subject::text, c.state,
    CASE c.state WHEN 'captured' THEN c.amount - c.refunded_amount ELSE 0 END,
    (SELECT count(*) FROM bank_call l WHERE l.charge_id = c.id AND l.kind = 'capture' AND l.verdict = 'succeeded')
FROM bank_charge c
"""


class Charge(NamedTuple):
    """A charge in the bank's books.

    `borne` is the captured amount minus the refunds. `captures` is how often the charge was captured.
    """

    payment: str
    subject: str
    state: str
    borne: int
    captures: int


class Machine:
    """A folder that replaces a machine with PostgreSQL. After a restore, `database_url` is still the same."""

    def __init__(self, folder: Path, sockets: Path, held: int) -> None:
        self._place = servers.ServerFolders(folder, sockets, held, durable=True)
        self.database_url = f"postgresql://checkout@/checkout?host={sockets}"
        self._cluster, self._backup, self._settings = (
            folder / "postgres",
            folder / "backup",
            folder / "conf.d",
        )
        for path in (folder / "archive", self._backup, self._settings):
            path.mkdir(mode=0o700)
        # This has the same effect as Debian's postgresql.conf, which includes such a folder too.
        with (self._cluster / "postgresql.conf").open("a") as settings:
            settings.write(f"include_dir = '{self._settings}'\n")
        archiving = self._here(pages.block(PAGE, "archive_command"))
        assert "archive_timeout = 60" in archiving
        (self._settings / "archive.conf").write_text(archiving.replace("timeout = 60", "timeout = 2"))
        self.server = servers.postgres(self._place)

    def _here(self, typed: str) -> str:
        """Return the page's commands with paths that exist on this machine."""
        folder = self._place.folder
        for there, here in {
            "/var/lib/postgresql/17/main": str(self._cluster),
            "/var/lib/postgresql/17/lost": str(folder / "lost"),
            "/etc/postgresql/17/main/conf.d": str(self._settings),
            "/archive/": f"{folder}/archive/",
            "/backup/": f"{self._backup}/",
            "runuser -u postgres --": " ".join(servers._drop_privileges_command()),
            "-o postgres -g postgres ": "",
        }.items():
            typed = typed.replace(there, here)
        return typed

    def _run(self, typed: str) -> None:
        """Run commands from the page, but leave out `systemctl`, because this class starts and stops the server."""
        server = next(part for part in self.server.command if part.endswith("/bin/postgres"))
        path = f"{Path(server).parent}:{servers.ENVIRONMENT['PATH']}"
        given = {"PATH": path, "PGHOST": str(self._place.sockets), "PGUSER": "checkout"}
        pages.run(f"systemctl() {{ :; }}\n{self._here(typed)}", **given)

    def back_up(self) -> None:
        """Take a base backup while the service runs."""
        self._run(pages.block(PAGE, "pg_basebackup --checkpoint"))

    def stop(self) -> None:
        """Stop the running server."""
        self.server.stop()

    def lose(self) -> None:
        """Kill the server and delete its data, including the part of the log that is not archived yet."""
        pid = int((self._cluster / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGKILL)
        self.server.stop()
        shutil.rmtree(self._cluster)
        self._cluster.mkdir()

    def restore(self, moment: str) -> None:
        """Restore the database to its state at the time `moment`. The `database_url` stays the same."""
        (day,) = self._backup.iterdir()
        typed = pages.block(PAGE, "recovery.signal").replace("<day>", day.name)
        self._run(RESTORED_TO.sub(f"recovery_target_time = '{moment}'", typed))
        self.server = servers.postgres(self._place)
        self.server.start()
        polling.until(self._is_promoted, within=120, what="the end of the recovery")

    def _is_promoted(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.database_url) as connection:
            row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
            return row == (False,)
        return False


class Drill(Deployment):
    """A deployment that can lose its database. The sandbox bank runs separately, with its own database."""

    def __init__(
        self,
        folder: Path,
        own: engines.Engines,
        books: engines.Engines,
        machine: Machine,
        variables: Mapping[str, str],
    ) -> None:
        super().__init__(folder, own, variables)
        self.machine, self._books = machine, books
        apart = {name: text for name, text in variables.items() if name != "BANK_URL"}
        apart |= {"DATABASE_URL": books.database_url, "DATABASE_POOL": "40"}
        command = (sys.executable, "-m", "gunicorn", "--config", "python:tests.bank.process")
        self.parts["bank"] = Part(command, apart)

    def lose_the_machine(self) -> None:
        """Kill all processes, and delete the data of Redis and of the database. Only the bank keeps its data."""
        for part in set(self._running) - {"bank"}:
            self.kill(part)
        self.machine.lose()
        self.engines.stop_redis()
        self.engines.start_redis()
        self.flush_redis()

    def start_again(self) -> None:
        """Start all parts that are not running. Return when web answers /readyz with any status."""
        for part in set(self.parts) - set(self._running):
            self.start(part)
        polling.until(lambda: self.readyz() is not None, within=60, what="an answer of web")

    def readyz(self) -> tuple[int, str] | None:
        with contextlib.suppress(requests.RequestException):
            answer = requests.get(f"{self.variables['BASE_URL']}/readyz", timeout=5)
            return answer.status_code, answer.text
        return None

    def rows(self, statement: str, *parameters: Any, of_bank: bool = False) -> list[tuple[Any, ...]]:
        """Run an SQL statement, and return its rows. Tests use it for data that no API shows."""
        address = self._books.database_url if of_bank else self.machine.database_url
        with psycopg.connect(address, autocommit=True) as connection:
            cursor = connection.execute(statement, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def charges(self) -> dict[str, Charge]:
        """Map the id of each payment to its charge at the bank."""
        return {row[0]: Charge(*row) for row in self.rows(CHARGES, of_bank=True)}


@contextlib.contextmanager
def running(folder: Path) -> Iterator[tuple[Drill, Service]]:
    """Run the service and its bank for the duration of the block, with a clerk process for manage.py commands."""
    template.copy_to(folder / "machine")
    template.copy_to(folder / "bank")
    port, bank_port = service.free_ports()
    shop_port, _ = service.free_ports()
    given = service.bare_environment(
        PORT=port,
        SHOP_PORT=shop_port,
        BANK_PORT=bank_port,
        BANK_URL=f"http://127.0.0.1:{bank_port}",
        DJANGO_SETTINGS_MODULE="tests.bank.settings",
        LIMIT_CREATES="100000/second",
    )
    variables = environment.variables_of_run(given, folder / "machine") | {"SANDBOX_REFUND_SECONDS": "1"}
    with contextlib.ExitStack() as stack:
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="checkout-")))
        held = stack.enter_context((folder / "lock").open("w"))
        machine = Machine(folder / "machine", sockets, held.fileno())
        machine.server.start()
        stack.callback(machine.stop)
        own = stack.enter_context(engines.running(folder, durable=False, database_url=machine.database_url))
        books = stack.enter_context(engines.running(folder / "bank", durable=False, redis_url=own.redis_url))
        variables |= {"DATABASE_URL": machine.database_url, "REDIS_URL": own.redis_url}
        drill = Drill(folder, own, books, machine, variables)
        drill.fill()
        stack.callback(drill.end)
        drill.make_whole()
        helper = stack.enter_context(service.clerk(variables))
        yield drill, Service(variables["BASE_URL"], "", helper)
