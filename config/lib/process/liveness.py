"""Signs of life of a process's threads: one that stands still for two minutes ends its process, which is started anew.

Rule environment.liveness.
"""

import os
import threading
import time

import structlog

from config.lib.process import sampling

log = structlog.get_logger("liveness")
STILL_SECONDS = 60.0  # without a sign, until a thread is said to stand still; no call outside takes as long
END_SECONDS = 120.0  # until its process ends: whatever it was at is found again by another
FROZEN_SECONDS = 10.0  # without a look of ours: then the whole process was stopped, and no thread is to blame
_signs: dict[str, float] = {}
_looked_at = time.monotonic()


def watch(name: str = "") -> None:
    """Expect signs of a thread from now on: of this one, unless another is named."""
    _signs[name or threading.current_thread().name] = time.monotonic()


def sign(name: str = "") -> None:
    """Note that a thread goes on: this one, unless another is named. Threads that nobody watches give none."""
    name = name or threading.current_thread().name
    if name in _signs:
        _signs[name] = time.monotonic()


def unwatch(name: str = "") -> None:
    """Expect no more signs of a thread, which ends."""
    _signs.pop(name or threading.current_thread().name, None)


def standing_still(seconds: float = STILL_SECONDS) -> list[str]:
    """Return the threads that have given no sign for so many seconds."""
    now = time.monotonic()
    return [name for name, at in list(_signs.items()) if now - at > seconds]


def ages() -> dict[str, float]:
    """Return for how many seconds each watched thread has given no sign."""
    now = time.monotonic()
    return {name: now - at for name, at in list(_signs.items())}


@sampling.every_second
def end_if_still() -> None:
    """End this process if one of its threads stands still, unless the whole of it did until just now."""
    global _looked_at
    now, before, _looked_at = time.monotonic(), _looked_at, time.monotonic()
    if now - before > FROZEN_SECONDS:
        _signs.update(dict.fromkeys(_signs, now))
    still = standing_still(END_SECONDS)
    if still:
        log.critical("stands still and ends", threads=still)
        os._exit(70)
