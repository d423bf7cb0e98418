"""When a delivery is tried again (rules delivery.hold, delivery.three_days): policies as a table, pure functions."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

JITTER = 0.1
RETRYABLE_CLIENT_ERRORS = frozenset({408, 429})


@dataclass(frozen=True)
class FromEvent:
    """Starts in seconds from the event; each at least `pause` seconds after the previous attempt's end."""

    starts: tuple[int, ...]
    pause: int

    @property
    def attempts(self) -> int:
        return len(self.starts)

    def start_after(self, attempts: int, event_at: datetime, ended_at: datetime, jitter: float) -> datetime:
        planned = event_at + timedelta(seconds=self.starts[attempts] * jitter)
        return max(planned, ended_at + timedelta(seconds=self.pause))

    def retries(self, http_status: int | None) -> bool:
        """No answer at all, or one that says "not now"; any other answer is the receiver's last word."""
        return http_status is None or http_status >= 500 or http_status in RETRYABLE_CLIENT_ERRORS


@dataclass(frozen=True)
class Gaps:
    """Gaps in seconds from an attempt's end to the next one's start."""

    gaps: tuple[int, ...]

    @property
    def attempts(self) -> int:
        return len(self.gaps) + 1

    def start_after(self, attempts: int, event_at: datetime, ended_at: datetime, jitter: float) -> datetime:
        return ended_at + timedelta(seconds=self.gaps[attempts - 1] * jitter)

    def retries(self, http_status: int | None) -> bool:
        """Whatever the answer was."""
        return True


MINUTE, HOUR = 60, 3600

THREE_DAYS = Gaps((1 * MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 6 * HOUR, 12 * HOUR, 20 * HOUR, 31 * HOUR))

POLICY: dict[str, FromEvent | Gaps] = {
    "checkout.authorized": FromEvent(starts=(0, 5, 25, 75), pause=3),
    "checkout.voided": THREE_DAYS,
    "marketing.opted_in": THREE_DAYS,
    "webhook.test": Gaps(()),
}


@dataclass(frozen=True, kw_only=True)
class Attempted:
    """One delivery as it stands when its latest attempt, number `attempts`, has ended without a 2xx."""

    event_type: str
    delivery_id: UUID
    attempts: int
    event_at: datetime
    ended_at: datetime
    valid_until: datetime | None
    http_status: int | None


def is_delivered(http_status: int | None) -> bool:
    """Whether the answer's status means delivered: 2xx does (rule delivery.delivered)."""
    return http_status is not None and 200 <= http_status < 300


def next_attempt_at(attempted: Attempted) -> datetime | None:
    """When the next attempt starts, or None when there is none left and the delivery is to be parked."""
    policy = POLICY[attempted.event_type]
    if attempted.attempts >= policy.attempts or not policy.retries(attempted.http_status):
        return None
    factor = jitter(attempted.delivery_id, attempted.attempts)
    start = policy.start_after(attempted.attempts, attempted.event_at, attempted.ended_at, factor)
    if attempted.valid_until is not None and start >= attempted.valid_until:
        return None
    return start


def planned(attempted: Attempted, next_at: datetime) -> list[datetime]:
    """When the attempts that are left start, should each fail at once: the next one, and those after it.

    The first is exact. Each further one is as much later as the attempt before it takes.
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
    """When the schedule goes on that a resent attempt has interrupted, None when that is too late."""
    policy = POLICY[attempted.event_type]
    pause = policy.pause if isinstance(policy, FromEvent) else 0
    start = max(planned, attempted.ended_at + timedelta(seconds=pause))
    return None if attempted.valid_until is not None and start >= attempted.valid_until else start


def jitter(delivery_id: UUID, attempts: int) -> float:
    """A factor of 0.9 to 1.1, always the same for the delivery and its number of attempts so far.

    So deliveries that failed together do not come back together, and the portal can show exact times.
    """
    digest = hashlib.sha256(delivery_id.bytes + attempts.to_bytes(4)).digest()
    share = int.from_bytes(digest[:8]) / (2**64 - 1)
    return 1 - JITTER + 2 * JITTER * share
