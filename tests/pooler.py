"""Runs PgBouncer between the tests and PostgreSQL, with the settings of config/deploy/pgbouncer.ini."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from config.local import children, engines, servers
from tests import template

SWITCH = "THROUGH_PGBOUNCER"  # if it is set, the service reaches PostgreSQL through PgBouncer
FILE = Path(__file__).resolve().parents[1] / "config" / "deploy" / "pgbouncer.ini"
PORT = 6432
START_SECONDS = 20


@contextlib.contextmanager
def in_front_of(database_url: str, folder: Path) -> Iterator[str]:
    """Yield the URL of the service's database.

    If THROUGH_PGBOUNCER is set, run PgBouncer for the duration of the block. The URL is then PgBouncer's.
    """
    if not os.environ.get(SWITCH):
        yield database_url
        return
    sockets = Path(database_url.partition("host=")[2])
    settings, log = _settings(folder, sockets), folder / "pgbouncer.log"
    program = shutil.which("pgbouncer", path=f"{os.defpath}:/usr/sbin")
    assert program, "make test-full installs it"
    command = children.tie_to_parent([program, str(settings)], by=signal.SIGINT)
    with log.open("ab") as lines:
        process = subprocess.Popen(
            [*servers._drop_privileges_command(), *command], stdout=lines, stderr=lines
        )
    try:
        _answers(sockets / f".s.PGSQL.{PORT}", log)
        yield f"{database_url}&port={PORT}"
    finally:
        process.terminate()
        process.wait(10)


@contextlib.contextmanager
def variables_of_pooled_run() -> Iterator[dict[str, str]]:
    """Run PostgreSQL and PgBouncer for a program that would otherwise start its own PostgreSQL.

    Yield the program's environment variables. They are empty if THROUGH_PGBOUNCER is not set.
    """
    if not os.environ.get(SWITCH):
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="checkout-pooled-") as place:
        folder = Path(place)
        template.copy_to(folder)
        with engines.running(folder, durable=False, redis_url="redis://elsewhere") as own:
            with in_front_of(own.database_url, folder) as database_url:
                owner = {"DATABASE_OWNER_URL": own.database_url}
                yield owner | {"DATABASE_URL": database_url, "DATABASE_PREPARE": "false"}


def _settings(folder: Path, sockets: Path) -> Path:
    """Write the shipped configuration with this test run's addresses; return the path of the file.

    PgBouncer asks for no password, because the tests' database role has no password.
    """
    (folder / "users.txt").write_text('"checkout" ""\n')
    text = FILE.read_text()
    for there, here in {
        "host=postgres": f"host={sockets}",
        "listen_addr = 0.0.0.0": f"unix_socket_dir = {sockets}\nunix_socket_mode = 0700",
        "listen_port = 6432": f"listen_port = {PORT}",
        "auth_type = scram-sha-256": "auth_type = trust",
        "/etc/pgbouncer/userlist.txt": str(folder / "users.txt"),
    }.items():
        assert there in text
        text = text.replace(there, here)
    (folder / "pgbouncer.ini").write_text(text)
    return folder / "pgbouncer.ini"


def _answers(address: Path, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as one:
            one.connect(str(address))
            return
        assert time.monotonic() < end, log.read_text(errors="replace")
        time.sleep(0.05)
