"""Measurements that a process takes every second, so that /metrics also shows parts that are not in use."""

import os
import threading
from collections.abc import Callable

SECONDS = 1.0
_looks: list[Callable[[], None]] = []
_starting = threading.Lock()
_begun_in: int | None = None  # the id of the process that has the sampling thread; a fork has no such thread


def every_second(look: Callable[[], None]) -> Callable[[], None]:
    """Register a quick function that is called every second, in a separate thread, once `begin` has run."""
    _looks.append(look)
    return look


def begin() -> None:
    """Start sampling in this process, unless it has started already."""
    global _begun_in
    with _starting:
        if _begun_in == os.getpid():
            return
        _begun_in = os.getpid()
    threading.Thread(target=_sample_forever, name="sampling", daemon=True).start()


def _sample_forever() -> None:
    pause = threading.Event()
    while True:
        for look in _looks:
            look()
        pause.wait(SECONDS)
