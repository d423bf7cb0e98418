"""PostgreSQL and Valkey for a local run. Both need no system packages and no port, and stop at the end of the run."""

import contextlib
import fcntl
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from config.local import CannotStart, servers

SOCKET_FOLDER = "checkout-"


@dataclass(frozen=True)
class Engines:
    """The addresses of a database and a Redis. If Redis is our own Valkey, it can be stopped and started."""

    database_url: str
    redis_url: str
    _valkey: servers.Server | None

    def stop_redis(self) -> None:
        self._own_valkey().stop()

    def start_redis(self) -> None:
        self._own_valkey().start()

    def _own_valkey(self) -> servers.Server:
        if self._valkey is None:
            raise ValueError("This Redis was given by its address: it is not ours to stop.")
        return self._valkey


@contextlib.contextmanager
def running(
    folder: Path, *, durable: bool = True, database_url: str = "", redis_url: str = ""
) -> Iterator[Engines]:
    """For the duration of the block, run the engines whose address is not given, with files in the folder.

    Raises CannotStart if another run uses the folder. With durable=False, a power cut can lose all data.
    """
    folder = folder.absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        held = stack.enter_context(_hold_folder(folder))
        sockets = stack.enter_context(_socket_folder(folder))
        place = servers.ServerFolders(folder, sockets, held, durable)
        if not database_url:
            _start_server(servers.postgres(place), stack)
        valkey = None if redis_url else _start_server(servers.valkey(place), stack)
        yield Engines(
            database_url or f"postgresql://checkout@/checkout?host={sockets}",
            redis_url or f"unix://{sockets / servers.VALKEY_SOCKET}",
            valkey,
        )


def _start_server(server: servers.Server, stack: contextlib.ExitStack) -> servers.Server:
    """Start a server. The stack stops it, even if an interrupt ends the start early."""
    stack.callback(server.stop)
    server.start()
    return server


@contextlib.contextmanager
def _hold_folder(folder: Path) -> Iterator[int]:
    """Lock the folder for this run, and yield the file descriptor of a lock that the engines inherit.

    `run.lock` is released when this process ends. `engines.lock` is locked until the engines have ended too.
    A start right after a crash therefore waits for engines that are still shutting down.
    """
    with (folder / "run.lock").open("w") as run, (folder / "engines.lock").open("w") as engines:
        if not _try_lock(run.fileno()):
            raise CannotStart(f"{folder} is in use by another run: stop that one first.")
        deadline = time.monotonic() + 10
        while not _try_lock(engines.fileno()):
            if time.monotonic() > deadline:
                raise CannotStart(f"The engines of an earlier run in {folder} are still stopping: try again.")
            time.sleep(0.05)
        yield engines.fileno()


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _socket_folder(folder: Path) -> Iterator[Path]:
    """Yield a private folder with a short path. The link folder/sockets points to it.

    A socket's path can have at most 103 bytes.
    """
    link = folder / "sockets"
    if link.is_symlink():  # an earlier run was killed and left it
        _remove_socket_folder(link)
    parent = tempfile.gettempdir() if len(tempfile.gettempdir()) < 60 else "/tmp"
    link.symlink_to(tempfile.mkdtemp(prefix=SOCKET_FOLDER, dir=parent))
    try:
        yield link.readlink()
    finally:
        _remove_socket_folder(link)


def _remove_socket_folder(link: Path) -> None:
    if link.readlink().name.startswith(SOCKET_FOLDER):
        shutil.rmtree(link.readlink(), ignore_errors=True)
    link.unlink()
