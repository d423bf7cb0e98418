"""Child processes that never outlive this process, and one log for the output of all of them."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

COLOURS = (36, 33, 35, 32, 34, 31)
# If the parent dies before setpriv has requested the signal, the child gets a different parent. The command
# must then not start.
PARENT_CHECK = ("sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"')


def tie_to_parent(command: Sequence[str], *, by: signal.Signals) -> list[str]:
    """Wrap a command so that Linux sends it the signal `by` when the thread that started it ends.

    Other systems have no such feature. On these, the command is unchanged, and continues to run if its parent
    is killed.
    """
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    if setpriv is None:
        return list(command)
    return [setpriv, "--pdeathsig", by.name.removeprefix("SIG"), *PARENT_CHECK, str(os.getpid()), *command]


class Log:
    """A log for several processes. Each line begins with the short name of its process."""

    def __init__(self, names: Iterable[str], *, colour: bool = False) -> None:
        width = max(map(len, names), default=0)
        self._prefixes = {
            name: f"\x1b[{COLOURS[i % len(COLOURS)]}m{name:<{width}} |\x1b[0m "
            if colour
            else f"{name:<{width}} | "
            for i, name in enumerate(names)
        }

    def follow(self, name: str, lines: Iterable[bytes]) -> None:
        """Write each line with the name of its process, until the stream ends."""
        prefix = self._prefixes[name].encode()
        for line in lines:
            write(prefix + line.rstrip(b"\r\n") + b"\n")


def write(line: bytes) -> None:
    """Write a line to the terminal. Ignore errors: a closed terminal must not prevent the clean-up."""
    with contextlib.suppress(OSError):
        os.write(1, line)


class Child:
    """A process in a separate session. The terminal's Ctrl-C therefore reaches only the parent."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Log) -> None:
        self.name = name
        self._process = subprocess.Popen(
            tie_to_parent(command, by=signal.SIGTERM),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._follow, args=(log, self._process.stdout), daemon=True)
        self._reader.start()

    def _follow(self, log: Log, stdout: IO[bytes]) -> None:
        with stdout:
            log.follow(self.name, stdout)

    def exit_code(self) -> int | None:
        """Return the process's exit code, or None while it runs."""
        return self._process.poll()

    def ask_to_end(self) -> None:
        self._process.terminate()

    def wait(self, seconds: float) -> None:
        """Wait up to `seconds` until the child's whole session has ended. Then kill the processes that are left."""
        end = time.monotonic() + seconds
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self._reader.join(max(0.0, end - time.monotonic()))
        # While the output is open, a process in the session is alive. No other process group can then have the
        # same id, so `killpg` ends only this session.
        if self._reader.is_alive() or self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(1)


def end_all(children: Sequence[Child], *, within: float) -> None:
    """Send one signal to each child, and wait. A second signal would make Celery stop at once."""
    for child in children:
        child.ask_to_end()
    deadline = time.monotonic() + within
    for child in children:
        child.wait(max(0.0, deadline - time.monotonic()))
