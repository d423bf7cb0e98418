"""What a process measures of itself once a second, so that /metrics shows also what no request has touched lately."""

import os
import threading
from collections.abc import Callable

SECONDS = 1.0
_looks: list[Callable[[], None]] = []
_starting = threading.Lock()
_begun_in: int | None = None  # the process whose thread samples: a fork has none


def every_second(look: Callable[[], None]) -> Callable[[], None]:
    """Have a function called once a second, from `begin` on, in a thread of its own. It must be quick."""
    _looks.append(look)
    return look


def begin() -> None:
    """Start sampling in this process, if it does not yet."""
    global _begun_in
    with _starting:
        if _begun_in == os.getpid():
            return
        _begun_in = os.getpid()
    threading.Thread(target=_sample, name="sampling", daemon=True).start()


def _sample() -> None:
    pause = threading.Event()
    while True:
        for look in _looks:
            look()
        pause.wait(SECONDS)
