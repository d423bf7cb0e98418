"""The retry schedules of deliveries (rules delivery.hold, delivery.three_days), as pure functions."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

JITTER = 0.1
RETRYABLE_CLIENT_ERRORS = frozenset({408, 429})


@dataclass(frozen=True)
class EventSchedule:
    """A schedule in which each retry starts a fixed number of seconds after the event.

    Each retry also starts at least `pause` seconds after the previous attempt ended.
    """

    starts: tuple[int, ...]
    pause: int

    @property
    def attempts(self) -> int:
        return len(self.starts) + 1

    def start_after(self, attempts: int, event_at: datetime, ended_at: datetime, jitter: float) -> datetime:
        planned = event_at + timedelta(seconds=self.starts[attempts - 1] * jitter)
        return max(planned, ended_at + timedelta(seconds=self.pause))

    def retries(self, http_status: int | None) -> bool:
        """Return whether to retry after this status, or after no answer if it is None.

        5xx, 408 and 429 mean "not now" and are retried. Any other status is final. Rule delivery.last_word.
        """
        return http_status is None or 500 <= http_status < 600 or http_status in RETRYABLE_CLIENT_ERRORS


@dataclass(frozen=True)
class GapSchedule:
    """A schedule in which each retry starts a fixed number of seconds after the previous attempt ended."""

    gaps: tuple[int, ...]

    @property
    def attempts(self) -> int:
        return len(self.gaps) + 1

    def start_after(self, attempts: int, event_at: datetime, ended_at: datetime, jitter: float) -> datetime:
        return ended_at + timedelta(seconds=self.gaps[attempts - 1] * jitter)

    def retries(self, http_status: int | None) -> bool:
        """Return True, because this schedule retries after any answer."""
        return True


MINUTE, HOUR = 60, 3600

THREE_DAYS = GapSchedule(
    (1 * MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 6 * HOUR, 12 * HOUR, 20 * HOUR, 31 * HOUR)
)

SCHEDULES: dict[str, EventSchedule | GapSchedule] = {
    "checkout.authorized": EventSchedule(starts=(5, 25, 75), pause=3),
    "checkout.voided": THREE_DAYS,
    "marketing.opted_in": THREE_DAYS,
    "webhook.test": GapSchedule(()),
}

# All scheduled attempts of an event end within this time. A delivery can be sent again only if it is younger
# than the retention minus this time, so that it ends before its partition is dropped.
MAX_SCHEDULE_LENGTH = timedelta(days=4)


@dataclass(frozen=True, kw_only=True)
class AttemptedDelivery:
    """A delivery after `attempts` scheduled attempts. The latest attempt ended without a 2xx."""

    event_type: str
    delivery_id: UUID
    attempts: int
    event_at: datetime
    ended_at: datetime
    valid_until: datetime | None
    http_status: int | None


def is_delivered(http_status: int | None) -> bool:
    """Return whether the status is 2xx, which means that the event is delivered (rule delivery.delivered)."""
    return http_status is not None and 200 <= http_status < 300


def next_attempt_at(attempted: AttemptedDelivery) -> datetime | None:
    """Return the time of the next attempt, or None if no attempt follows and the delivery is parked."""
    policy = SCHEDULES[attempted.event_type]
    if attempted.attempts >= policy.attempts or not policy.retries(attempted.http_status):
        return None
    factor = jitter_factor(attempted.delivery_id, attempted.attempts)
    start = policy.start_after(attempted.attempts, attempted.event_at, attempted.ended_at, factor)
    if attempted.valid_until is not None and start >= attempted.valid_until:
        return None
    return start


def planned_attempts(attempted: AttemptedDelivery, next_at: datetime) -> list[datetime]:
    """Return the start times of the remaining attempts if each of them fails at once. The first is `next_at`.

    The first time is exact. Later attempts are delayed by the time that the attempts before them take.
    """
    starts = [next_at]
    while True:
        made = attempted.attempts + len(starts)
        then = replace(attempted, attempts=made, ended_at=starts[-1], http_status=None)
        start = next_attempt_at(then)
        if start is None:
            return starts
        starts.append(start)


def resumes_at(planned: datetime, attempted: AttemptedDelivery) -> datetime | None:
    """Return the time at which the schedule continues after a requested attempt.

    Returns None if it would continue at or after `valid_until`.
    """
    policy = SCHEDULES[attempted.event_type]
    pause = policy.pause if isinstance(policy, EventSchedule) else 0
    start = max(planned, attempted.ended_at + timedelta(seconds=pause))
    return None if attempted.valid_until is not None and start >= attempted.valid_until else start


def jitter_factor(delivery_id: UUID, attempts: int) -> float:
    """Return a factor from 0.9 to 1.1 that depends only on the delivery and its number of attempts so far.

    Deliveries that failed together are therefore not retried together. The portal can show exact times,
    because the factor is not random.
    """
    digest = hashlib.sha256(delivery_id.bytes + attempts.to_bytes(4)).digest()
    share = int.from_bytes(digest[:8]) / (2**64 - 1)
    return 1 - JITTER + 2 * JITTER * share
