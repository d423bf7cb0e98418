"""Helpers for tests that start processes: list the processes in a folder, and wait for a condition."""

import time
from collections.abc import Callable
from pathlib import Path


def processes_in(folder: Path) -> list[str]:
    """Return the command lines of the processes whose working directory is in the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            # The process has ended, or belongs to another user.
            continue
    return found


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Wait until the condition is true; return False if it is still false after this many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
