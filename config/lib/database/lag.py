"""How far behind the replica is: this process looks once a second, so that no request has to (rules replica.*).

On a primary at rest the time of the last replayed commit says nothing, and two machines' clocks may differ. So the
primary's position in its log is noted each second, by the clock of this process; what the replica shows is no older
than the latest position that it has reached.
"""

import threading
import time
from collections import deque
from typing import Any, NamedTuple

import structlog
from django.db import DEFAULT_DB_ALIAS, Error, close_old_connections, connections
from prometheus_client import Gauge

ALIAS = "replica"
MAX_LAG_SECONDS = 5.0
EVERY_SECONDS = 1.0
REMEMBERED = 3600  # positions, one a second
LAG = Gauge(
    "checkout_replica_lag_seconds", "How old what the replica shows may be", multiprocess_mode="livemax"
)
# Which server it is too: a promoted replica, one of another cluster or of a branch that was left is none of ours.
# PostgreSQL tells a new timeline after the next checkpoint, on both: until then the primary serves.
_LOOK = """
SELECT pg_is_in_recovery(), concat_ws('/', system_identifier, timeline_id), pg_wal_lsn_diff(
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, '0/0')::bigint
FROM pg_control_system(), pg_control_checkpoint()
"""
log = structlog.get_logger("config.replica")


class Place(NamedTuple):
    """A server: whether it follows another one, its cluster and timeline, and how far its log is read or written."""

    follows: bool
    server: str
    position: int


class Sample(NamedTuple):
    """The primary's position, and when it was asked for, by this process's own clock."""

    at: float
    position: int


class _Known:
    """What this process has seen of the two servers."""

    is_watched = False
    answers = False  # the replica, when it was last asked or read
    recent: tuple[Sample, ...] = ()  # not older than MAX_LAG_SECONDS when the primary last answered
    replayed_at = 0.0  # when the primary was where the replica is now, at the earliest
    samples: deque[Sample] = deque(maxlen=REMEMBERED)
    server = ""  # the primary's


def begin() -> None:
    """Watch the replica from now on in this process, if there is one."""
    if ALIAS in connections.settings:
        _Known.is_watched, _Known.replayed_at = True, time.monotonic()
        threading.Thread(target=_follow, name="replica", daemon=True).start()


def _follow() -> None:
    pause = threading.Event()
    while True:
        look()
        pause.wait(EVERY_SECONDS)


def look() -> None:
    """Ask the primary, then the replica, where they are."""
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
        pool.check()  # what it has from before is dead
    found = _place(ALIAS)
    is_ours = found.follows and found.server == _Known.server
    if is_ours:
        reached = (sample.at for sample in reversed(_Known.samples) if sample.position <= found.position)
        _Known.replayed_at = next(reached, _Known.replayed_at)
    if is_ours != _Known.answers:
        log.info("replica", answers=is_ours, lag_ms=round(seconds() * 1000))
    _Known.answers = is_ours


def _place(alias: str) -> Place:
    with connections[alias].cursor() as cursor:
        cursor.execute(_LOOK)
        row: Any = cursor.fetchone()
    return Place(*row)


def seconds() -> float:
    """Return how many seconds old what the replica shows may be; as long as it is away, ever more."""
    return time.monotonic() - _Known.replayed_at


def wanted() -> int | None:
    """Return the position that a replica must have reached to be read now; None while the primary serves."""
    if not _Known.answers:
        return None
    since = time.monotonic() - MAX_LAG_SECONDS
    return next((sample.position for sample in _Known.recent if sample.at >= since), None)


def failed(error: Exception) -> None:
    """Have the primary serve until the replica was looked at again."""
    _Known.answers = False
    log.warning("replica failed", error=type(error).__name__, reason=str(error)[:200])


class Shown(NamedTuple):
    """What operators are shown: how many seconds the replica is behind, and whether it serves."""

    seconds: float
    serves: bool


def shown() -> Shown | None:
    """Return how the replica is, as this process knows it; None where there is none."""
    if not _Known.is_watched:
        return None
    return Shown(seconds(), wanted() is not None and seconds() <= MAX_LAG_SECONDS)
