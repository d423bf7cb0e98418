"""The replica's lag. Each process measures it every second, so requests do not need to (rules replica.*).

The time of the last replayed commit does not show the lag, because the primary might have no writes, and the
clocks of two machines can differ. Each process therefore records the position of the primary's log every
second, with the time on the process's own clock. The time of the last recorded position that the replica has
reached shows how old the replica's data can be.
"""

import time
from collections import deque
from typing import Any, NamedTuple

import structlog
from django.db import DEFAULT_DB_ALIAS, Error, close_old_connections, connections
from prometheus_client import Gauge

from config.lib.database import queries, statements
from config.lib.process import repeating

ALIAS = "replica"
MAX_LAG_SECONDS = 5.0
EVERY_SECONDS = 1.0
MAX_SAMPLES = 3600  # how many positions are remembered; one is added per second
LAG = Gauge(
    "checkout_replica_lag_seconds", "How old what the replica shows may be", multiprocess_mode="livemax"
)
log = structlog.get_logger("config.replica")


class ServerState(NamedTuple):
    """A server's state: whether it is a replica, its cluster and timeline, and its position in the log."""

    follows: bool
    server: str
    position: int


class Sample(NamedTuple):
    """The primary's position, and when it was queried, by this process's clock."""

    at: float
    position: int


class _ReplicaState:
    """What this process last learned about the primary and the replica."""

    is_watched = False
    answers = False  # whether the replica answered the last query
    # The samples that were at most MAX_LAG_SECONDS old when the primary last answered.
    recent: tuple[Sample, ...] = ()
    # A time on the process's clock. The replica has every change that the primary had at that time.
    replayed_at = 0.0
    samples: deque[Sample] = deque(maxlen=MAX_SAMPLES)
    server = ""  # the primary's identity


def start_watching() -> None:
    """Start to watch the replica in this process, if there is a replica."""
    if ALIAS in connections.settings:
        _ReplicaState.is_watched, _ReplicaState.replayed_at = True, time.monotonic()
        repeating.start_repeating("replica", measure_lag, EVERY_SECONDS)


def measure_lag() -> None:
    """Query the positions of the primary and of the replica, in this order."""
    try:
        _measure_primary()
        _measure_replica()
    except Error as error:
        if _ReplicaState.answers:
            stop_reads(error)
    finally:
        close_old_connections()
        LAG.set(lag_seconds())


def _measure_primary() -> None:
    at = time.monotonic()
    state = _read_server_state(DEFAULT_DB_ALIAS)
    _ReplicaState.server = state.server
    sample = Sample(at, state.position)
    _ReplicaState.samples.append(sample)
    _ReplicaState.recent = (
        *(former for former in _ReplicaState.recent if former.at > at - MAX_LAG_SECONDS),
        sample,
    )


def _measure_replica() -> None:
    if not _ReplicaState.answers:
        pool: Any = connections[ALIAS].pool  # type: ignore[attr-defined]  # the stubs lack it
        pool.open()
        pool.check()  # removes the connections that broke while the replica was not available
    state = _read_server_state(ALIAS)
    is_ours = state.follows and state.server == _ReplicaState.server
    if is_ours:
        reached = (
            sample.at for sample in reversed(_ReplicaState.samples) if sample.position <= state.position
        )
        _ReplicaState.replayed_at = next(reached, _ReplicaState.replayed_at)
    if is_ours != _ReplicaState.answers:
        log.info("replica", answers=is_ours, lag_ms=round(lag_seconds() * 1000))
    _ReplicaState.answers = is_ours


def _read_server_state(alias: str) -> ServerState:
    return ServerState(*queries.row(statements.READ_PLACE, using=alias))


def lag_seconds() -> float:
    """Return how old the replica's data can be, in seconds. The value grows while the replica does not answer."""
    return time.monotonic() - _ReplicaState.replayed_at


def required_position() -> int | None:
    """Return the position that the replica must have reached before it is read, or None if it must not be read."""
    if not _ReplicaState.answers:
        return None
    since = time.monotonic() - MAX_LAG_SECONDS
    return next((sample.position for sample in _ReplicaState.recent if sample.at >= since), None)


def stop_reads(error: Exception) -> None:
    """Stop all reads from the replica until it is checked again."""
    _ReplicaState.answers = False
    log.warning("replica failed", error=type(error).__name__, reason=str(error)[:200])


class ReplicaLag(NamedTuple):
    """The replica's state, for operators: how many seconds it is behind, and whether it is in use."""

    seconds: float
    serves: bool


def known_lag() -> ReplicaLag | None:
    """Return the replica's state as this process last measured it. Without a replica, return None."""
    if not _ReplicaState.is_watched:
        return None
    return ReplicaLag(lag_seconds(), required_position() is not None and lag_seconds() <= MAX_LAG_SECONDS)
