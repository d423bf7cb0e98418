"""Measurements that a process takes every second, so that /metrics also shows parts that are not in use."""

import os
import threading
from collections.abc import Callable

from config.lib.process import repeating

SECONDS = 1.0
_samplers: list[Callable[[], None]] = []
_starting = threading.Lock()
_started_in: int | None = (
    None  # the id of the process that has the sampling thread; a forked process has no such thread
)


def every_second(look: Callable[[], None]) -> Callable[[], None]:
    """Register a quick function that is called every second, in a separate thread, once `begin` has run."""
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
