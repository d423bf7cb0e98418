"""A thread that calls registered functions every second, for example to set metrics of parts that are not in use."""

import os
import threading
from collections.abc import Callable

from config.lib.process import repeating

SECONDS = 1.0
_samplers: list[Callable[[], None]] = []
_starting = threading.Lock()
# The id of the process that has the sampling thread. A forked process has no such thread.
_started_in: int | None = None


def every_second(look: Callable[[], None]) -> Callable[[], None]:
    """Register a quick function. After `begin`, a separate thread calls it every second."""
    _samplers.append(look)
    return look


def begin() -> None:
    """Start sampling in this process, unless it has started already."""
    global _started_in
    with _starting:
        if _started_in == os.getpid():
            return
        _started_in = os.getpid()
    repeating.start_repeating("sampling", _sample, SECONDS)


def _sample() -> None:
    for look in _samplers:
        look()
