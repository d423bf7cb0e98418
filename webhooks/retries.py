"""The retry schedules of deliveries (rules delivery.hold, delivery.three_days), as pure functions."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

JITTER = 0.1
RETRYABLE_CLIENT_ERRORS = frozenset({408, 429})


@dataclass(frozen=True)
class FromEvent:
    """A policy of starts, in seconds from the event.

    Each start is at least `pause` seconds after the end of the previous attempt.
    """

    starts: tuple[int, ...]
    pause: int

    @property
    def attempts(self) -> int:
        return len(self.starts)

    def start_after(self, attempts: int, event_at: datetime, ended_at: datetime, jitter: float) -> datetime:
        planned = event_at + timedelta(seconds=self.starts[attempts] * jitter)
        return max(planned, ended_at + timedelta(seconds=self.pause))

    def retries(self, http_status: int | None) -> bool:
        """Return whether to retry: after no answer, or after one that means "not now"; any other is final.

        Rule delivery.last_word.
        """
        return http_status is None or 500 <= http_status < 600 or http_status in RETRYABLE_CLIENT_ERRORS


@dataclass(frozen=True)
class Gaps:
    """A policy of gaps, in seconds from an attempt's end to the next one's start."""

    gaps: tuple[int, ...]

    @property
    def attempts(self) -> int:
        return len(self.gaps) + 1

    def start_after(self, attempts: int, event_at: datetime, ended_at: datetime, jitter: float) -> datetime:
        return ended_at + timedelta(seconds=self.gaps[attempts - 1] * jitter)

    def retries(self, http_status: int | None) -> bool:
        """Return True, because this policy retries after any answer."""
        return True


MINUTE, HOUR = 60, 3600

THREE_DAYS = Gaps((1 * MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 6 * HOUR, 12 * HOUR, 20 * HOUR, 31 * HOUR))

POLICY: dict[str, FromEvent | Gaps] = {
    "checkout.authorized": FromEvent(starts=(0, 5, 25, 75), pause=3),
    "checkout.voided": THREE_DAYS,
    "marketing.opted_in": THREE_DAYS,
    "webhook.test": Gaps(()),
}

# Longer than all scheduled attempts of an event take. If a delivery is younger than the retention less this
# time, it can be sent again, and it ends before its partition is dropped.
ENDS_WITHIN = timedelta(days=4)


@dataclass(frozen=True, kw_only=True)
class Attempted:
    """A delivery whose latest attempt, number `attempts`, has ended without a 2xx."""

    event_type: str
    delivery_id: UUID
    attempts: int
    event_at: datetime
    ended_at: datetime
    valid_until: datetime | None
    http_status: int | None


def is_delivered(http_status: int | None) -> bool:
    """Return whether the answer's status means delivered: 2xx does (rule delivery.delivered)."""
    return http_status is not None and 200 <= http_status < 300


def next_attempt_at(attempted: Attempted) -> datetime | None:
    """Return when the next attempt starts; None if no attempt is left and the delivery must be parked."""
    policy = POLICY[attempted.event_type]
    if attempted.attempts >= policy.attempts or not policy.retries(attempted.http_status):
        return None
    factor = jitter(attempted.delivery_id, attempted.attempts)
    start = policy.start_after(attempted.attempts, attempted.event_at, attempted.ended_at, factor)
    if attempted.valid_until is not None and start >= attempted.valid_until:
        return None
    return start


def planned(attempted: Attempted, next_at: datetime) -> list[datetime]:
    """Return when the remaining attempts start if each fails at once: the next one, and those after it.

    The first time is exact. Each further attempt starts later by the time that the attempts before it take.
    """
    starts = [next_at]
    while True:
        made = attempted.attempts + len(starts)
        then = replace(attempted, attempts=made, ended_at=starts[-1], http_status=None)
        start = next_attempt_at(then)
        if start is None:
            return starts
        starts.append(start)


def resumes_at(planned: datetime, attempted: Attempted) -> datetime | None:
    """Return when the schedule that a resent attempt interrupted continues; None if that is too late."""
    policy = POLICY[attempted.event_type]
    pause = policy.pause if isinstance(policy, FromEvent) else 0
    start = max(planned, attempted.ended_at + timedelta(seconds=pause))
    return None if attempted.valid_until is not None and start >= attempted.valid_until else start


def jitter(delivery_id: UUID, attempts: int) -> float:
    """Return a factor of 0.9 to 1.1, always the same for a delivery and its number of attempts so far.

    Deliveries that failed together are therefore not retried together, and the portal can show exact times.
    """
    digest = hashlib.sha256(delivery_id.bytes + attempts.to_bytes(4)).digest()
    share = int.from_bytes(digest[:8]) / (2**64 - 1)
    return 1 - JITTER + 2 * JITTER * share
