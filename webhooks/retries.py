"""The retry schedules for deliveries (rules delivery.hold, delivery.three_days). All functions are pure."""

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
        """Return whether to retry after this status, which is None if there was no answer.

        The statuses 5xx, 408 and 429 mean "not now", so the attempt is retried. Any other status is final. Rule
        delivery.last_word.
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

# All scheduled attempts for an event end within this time. To be sent again, a delivery must be younger than the
# retention minus this time. It then ends before its partition is deleted.
MAX_SCHEDULE_LENGTH = timedelta(days=4)


@dataclass(frozen=True, kw_only=True)
class AttemptedDelivery:
    """A delivery after `attempts` scheduled attempts. The latest attempt has failed, because it ended without a 2xx."""

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
    """Return the time of the next attempt. Return None if there is no further attempt and the delivery is parked."""
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

    The first time is exact. Later times are estimates, because an attempt starts later if the attempts before it take
    longer.
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
    """Return the time at which the schedule continues after an attempt that a person requested.

    Returns None if this time is not before `valid_until`.
    """
    policy = SCHEDULES[attempted.event_type]
    pause = policy.pause if isinstance(policy, EventSchedule) else 0
    start = max(planned, attempted.ended_at + timedelta(seconds=pause))
    return None if attempted.valid_until is not None and start >= attempted.valid_until else start


def jitter_factor(delivery_id: UUID, attempts: int) -> float:
    """Return a factor from 0.9 to 1.1 that depends only on the delivery and its number of attempts so far.

    Because deliveries have different factors, deliveries that failed together are not retried together. The factor is
    not random, so the portal can show exact times.
    """
    digest = hashlib.sha256(delivery_id.bytes + attempts.to_bytes(4)).digest()
    share = int.from_bytes(digest[:8]) / (2**64 - 1)
    return 1 - JITTER + 2 * JITTER * share
