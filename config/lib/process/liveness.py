"""Detects stuck threads. Each watched thread regularly calls `watch` or `record_sign` to show that it is alive.

If a thread is stuck for two minutes, its process ends, and systemd or the container engine restarts it. Rule
environment.liveness.
"""

import os
import threading
import time

import structlog
from gunicorn import systemd

from config.lib.process import sampling

log = structlog.get_logger("liveness")
# A thread that gives no sign of life for this long is stuck. No call to a third party takes so long.
STILL_SECONDS = 60.0
END_SECONDS = 120.0  # if a thread is stuck for this long, its process ends, and other processes do its work
# If no check has run for this long, the whole process was suspended, not only one thread.
FROZEN_SECONDS = 10.0
_signs: dict[str, float] = {}
_checked_at = time.monotonic()


def watch(name: str = "") -> None:
    """Watch a thread, by default the current one, from now on. The call counts as a sign of life."""
    _signs[name or threading.current_thread().name] = time.monotonic()


def record_sign(name: str = "") -> None:
    """Record a sign of life from a thread, by default the current one. Ignore threads that are not watched."""
    name = name or threading.current_thread().name
    if name in _signs:
        _signs[name] = time.monotonic()


def unwatch(name: str = "") -> None:
    """Stop watching a thread that is about to end."""
    _signs.pop(name or threading.current_thread().name, None)


def stuck_threads(seconds: float = STILL_SECONDS) -> list[str]:
    """Return the threads that have given no sign of life for this many seconds."""
    now = time.monotonic()
    return [name for name, at in list(_signs.items()) if now - at > seconds]


def sign_ages() -> dict[str, float]:
    """Return the number of seconds since the last sign of life, for each watched thread."""
    now = time.monotonic()
    return {name: now - at for name, at in list(_signs.items())}


@sampling.every_second
def exit_if_stuck() -> None:
    """End this process if one of its threads is stuck.

    If the whole process was suspended, its threads could give no sign. The two minutes then start again for
    all.
    """
    global _checked_at
    now, before, _checked_at = time.monotonic(), _checked_at, time.monotonic()
    if now - before > FROZEN_SECONDS:
        _signs.update(dict.fromkeys(_signs, now))
    still = stuck_threads(END_SECONDS)
    if still:
        log.critical("stands still and ends", threads=still)
        os._exit(70)


@sampling.every_second
def ping_watchdog() -> None:
    """Send a sign of life to systemd, unless a thread is stuck or the unit has no WatchdogSec.

    A frozen process cannot call this function, so systemd restarts it after WatchdogSec.
    """
    if "WATCHDOG_USEC" in os.environ and not stuck_threads():
        systemd.sd_notify("WATCHDOG=1", log)
