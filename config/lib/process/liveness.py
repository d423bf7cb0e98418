"""Signs of life of a process's threads. If one is stuck for two minutes, its process ends and is restarted.

Rule environment.liveness.
"""

import os
import threading
import time

import structlog

from config.lib.process import sampling

log = structlog.get_logger("liveness")
STILL_SECONDS = 60.0  # without a sign, a thread counts as stuck; no call to an outside party takes that long
END_SECONDS = 120.0  # without a sign, the process ends; another process finds the same work again
FROZEN_SECONDS = 10.0  # without a check: the whole process was stopped, and no thread counts as stuck
_signs: dict[str, float] = {}
_looked_at = time.monotonic()


def watch(name: str = "") -> None:
    """Expect signs of life of a thread from now on. The default is the current thread."""
    _signs[name or threading.current_thread().name] = time.monotonic()


def sign(name: str = "") -> None:
    """Record a sign of life of a thread, by default the current one. Ignore a thread that is not watched."""
    name = name or threading.current_thread().name
    if name in _signs:
        _signs[name] = time.monotonic()


def unwatch(name: str = "") -> None:
    """Expect no more signs of a thread, because it ends."""
    _signs.pop(name or threading.current_thread().name, None)


def standing_still(seconds: float = STILL_SECONDS) -> list[str]:
    """Return the threads that have given no sign of life for this many seconds."""
    now = time.monotonic()
    return [name for name, at in list(_signs.items()) if now - at > seconds]


def ages() -> dict[str, float]:
    """Return the seconds since the last sign of life of each watched thread."""
    now = time.monotonic()
    return {name: now - at for name, at in list(_signs.items())}


@sampling.every_second
def end_if_still() -> None:
    """End this process if one of its threads is stuck, unless the whole process was stopped until now."""
    global _looked_at
    now, before, _looked_at = time.monotonic(), _looked_at, time.monotonic()
    if now - before > FROZEN_SECONDS:
        _signs.update(dict.fromkeys(_signs, now))
    still = standing_still(END_SECONDS)
    if still:
        log.critical("stands still and ends", threads=still)
        os._exit(70)
