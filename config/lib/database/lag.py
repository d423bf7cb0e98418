"""The lag of the replica. Each process measures it every second, so that requests need not (rules replica.*).

The time of the last replayed commit does not show the lag: the primary might have no writes, and the clocks
of two machines can differ. Each process therefore records, every second, the position of the primary's log,
with the time on the process's clock. The last recorded position that the replica has reached shows how old
the replica's data can be.
"""

import threading
import time
from collections import deque
from typing import Any, NamedTuple

import structlog
from django.db import DEFAULT_DB_ALIAS, Error, close_old_connections, connections
from prometheus_client import Gauge

from config.lib.database import queries, statements

ALIAS = "replica"
MAX_LAG_SECONDS = 5.0
EVERY_SECONDS = 1.0
REMEMBERED = 3600  # how many positions are remembered, one per second
LAG = Gauge(
    "checkout_replica_lag_seconds", "How old what the replica shows may be", multiprocess_mode="livemax"
)
log = structlog.get_logger("config.replica")


class Place(NamedTuple):
    """A server's state: whether it is a replica, its cluster and timeline, and its position in the log."""

    follows: bool
    server: str
    position: int


class Sample(NamedTuple):
    """The primary's position, and when this process asked for it, by its own clock."""

    at: float
    position: int


class _Known:
    """What this process knows about the primary and the replica."""

    is_watched = False
    answers = False  # whether the replica answered when it was last asked or read
    # The samples that were not older than MAX_LAG_SECONDS when the primary last answered.
    recent: tuple[Sample, ...] = ()
    # The replica has all changes that the primary had at this time on the process's clock.
    replayed_at = 0.0
    samples: deque[Sample] = deque(maxlen=REMEMBERED)
    server = ""  # of the primary


def begin() -> None:
    """Start to watch the replica in this process, if the service has a replica."""
    if ALIAS in connections.settings:
        _Known.is_watched, _Known.replayed_at = True, time.monotonic()
        threading.Thread(target=_follow, name="replica", daemon=True).start()


def _follow() -> None:
    pause = threading.Event()
    while True:
        measure_lag()
        pause.wait(EVERY_SECONDS)


def measure_lag() -> None:
    """Ask the primary, then the replica, for its position."""
    try:
        _look_at_primary()
        _look_at_replica()
    except Error as error:
        if _Known.answers:
            failed(error)
    finally:
        close_old_connections()
        LAG.set(seconds())


def _look_at_primary() -> None:
    at = time.monotonic()
    found = _place(DEFAULT_DB_ALIAS)
    _Known.server = found.server
    sample = Sample(at, found.position)
    _Known.samples.append(sample)
    _Known.recent = (*(former for former in _Known.recent if former.at > at - MAX_LAG_SECONDS), sample)


def _look_at_replica() -> None:
    if not _Known.answers:
        pool: Any = connections[ALIAS].pool  # type: ignore[attr-defined]  # the stubs lack it
        pool.open()
        pool.check()  # removes connections that broke while the replica was away
    found = _place(ALIAS)
    is_ours = found.follows and found.server == _Known.server
    if is_ours:
        reached = (sample.at for sample in reversed(_Known.samples) if sample.position <= found.position)
        _Known.replayed_at = next(reached, _Known.replayed_at)
    if is_ours != _Known.answers:
        log.info("replica", answers=is_ours, lag_ms=round(seconds() * 1000))
    _Known.answers = is_ours


def _place(alias: str) -> Place:
    return Place(*queries.row(statements.READ_PLACE, using=alias))


def seconds() -> float:
    """Return how old, in seconds, the replica's data can be. The value grows while the replica is away."""
    return time.monotonic() - _Known.replayed_at


def wanted() -> int | None:
    """Return the position that the replica must have reached to be read, or None if it must not be read."""
    if not _Known.answers:
        return None
    since = time.monotonic() - MAX_LAG_SECONDS
    return next((sample.position for sample in _Known.recent if sample.at >= since), None)


def failed(error: Exception) -> None:
    """Stop reads on the replica until it is checked again."""
    _Known.answers = False
    log.warning("replica failed", error=type(error).__name__, reason=str(error)[:200])


class Shown(NamedTuple):
    """The replica's state for operators: how many seconds it is behind, and whether it serves."""

    seconds: float
    serves: bool


def known_lag() -> Shown | None:
    """Return the replica's state as this process knows it, or None if there is no replica."""
    if not _Known.is_watched:
        return None
    return Shown(seconds(), wanted() is not None and seconds() <= MAX_LAG_SECONDS)
