"""Records and reads the health of a subscription's endpoint.

The health is updated after each batch of results, and is shown in the portal and the admin.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple

import orjson
from django.db.models import Min, OuterRef, Subquery

from config.lib import clock
from config.lib.database import queries
from webhooks import resending, retries, statements
from webhooks.models import Delivery, Endpoint, Subscription

HEALTH_PERIOD = timedelta(hours=24)
LATEST = 1000  # at most this many attempts and this many parked deliveries are counted
HUNG_MS = 5000
# Errors that the endpoint has not caused.
WORKER_LOST = "worker_lost"
REFUSED_BY_SANDBOX = "HTTP 500, made by the sandbox"
DROPPED_BY_SANDBOX = "the sandbox dropped the answer"
ERRORS_NOT_OF_ENDPOINT = (WORKER_LOST, REFUSED_BY_SANDBOX, DROPPED_BY_SANDBOX)


class AttemptResult(NamedTuple):
    """The part of an attempt's result that matters for the health of its endpoint."""

    subscription_id: str
    ended_at: datetime
    http_status: int | None
    error_message: str | None
    duration_ms: int | None

    @property
    def is_success(self) -> bool:
        return retries.is_delivered(self.http_status)

    @property
    def has_hung(self) -> bool:
        return self.http_status is None and (self.duration_ms or 0) >= HUNG_MS


@dataclass(frozen=True)
class Health:
    """The health of an endpoint in the last 24 hours: its attempts, due deliveries and parked deliveries.

    Only the latest 1,000 attempts and at most 1,000 parked deliveries are counted. Parked deliveries are not counted
    if a person has closed them (rule resend.closed), or if they belong to test events. `success_rate` is from 0 to 1.
    If there are no attempts, `success_rate` and the durations are None. `working_since` is the time of the first
    success after the last failure, or None if no counted attempt has failed.
    """

    attempts: int
    success_rate: float | None
    p50_ms: int | None
    p95_ms: int | None
    oldest_due_at: datetime | None
    parked: int
    last_success_at: datetime | None
    last_failure_at: datetime | None
    last_error: str
    failing_since: datetime | None
    working_since: datetime | None


class AttemptSummary(NamedTuple):
    """The number and the durations of an endpoint's latest attempts: those of the last 24 hours, at most 1,000.

    `working_since` is the time of the first success after the endpoint's last failure.
    """

    attempts: int
    delivered: int
    p50_ms: int | None
    p95_ms: int | None
    working_since: datetime | None


def record_health(results: Iterable[AttemptResult]) -> None:
    """Update the health of endpoints after a batch of attempts was recorded."""
    by_endpoint: dict[str, list[AttemptResult]] = defaultdict(list)
    for attempt in results:
        by_endpoint[attempt.subscription_id].append(attempt)
    if not by_endpoint:
        return
    rows = [_health_row(attempts) for attempts in by_endpoint.values()]
    queries.execute(statements.SAVE_ENDPOINT_HEALTH, {"rows": orjson.dumps(rows).decode()})


def _health_row(attempts: Sequence[AttemptResult]) -> dict[str, Any]:
    """Return the row for statements.SAVE_ENDPOINT_HEALTH that summarises the attempts at one endpoint."""
    in_order = sorted(attempts, key=attrgetter("ended_at"))
    success = max((attempt.ended_at for attempt in in_order if attempt.is_success), default=None)
    failures = [attempt for attempt in in_order if not attempt.is_success]
    has_only_hung = all(attempt.has_hung for attempt in in_order)
    return {
        "subscription_id": in_order[0].subscription_id,
        "last_success_at": success,
        "last_failure_at": failures[-1].ended_at if failures else None,
        "last_error": (failures[-1].error_message or "") if failures else "",
        "failing_since": next(
            (failure.ended_at for failure in failures if success is None or failure.ended_at > success), None
        ),
        "hung_in_a_row": len(in_order) if has_only_hung else 0,
    }


def read_health(subscription: Subscription) -> Health:
    """Return the current health of the subscription's endpoint. The cost does not depend on the size of the log."""
    endpoint, now = Endpoint.objects.filter(subscription=subscription).first() or Endpoint(), clock.now()
    summary = summarize_attempts(subscription, endpoint.last_failure_at)
    return Health(
        attempts=summary.attempts,
        success_rate=summary.delivered / summary.attempts if summary.attempts else None,
        p50_ms=summary.p50_ms,
        p95_ms=summary.p95_ms,
        oldest_due_at=_oldest_due_at(subscription, now),
        parked=_count_parked(subscription, now - HEALTH_PERIOD),
        last_success_at=endpoint.last_success_at,
        last_failure_at=endpoint.last_failure_at,
        last_error=endpoint.last_error,
        failing_since=endpoint.failing_since,
        working_since=summary.working_since if summary.delivered < summary.attempts else None,
    )


def summarize_attempts(subscription: Subscription, last_failure_at: datetime | None = None) -> AttemptSummary:
    """Return a summary of the endpoint's latest attempts. The cost does not depend on the size of the log."""
    now = clock.now()
    parameters: dict[str, Any] = {
        "merchant": subscription.merchant_id,
        "subscription": subscription.pk,
        "since": now - HEALTH_PERIOD,
        "first": clock.first_id(now - HEALTH_PERIOD - retries.MAX_SCHEDULE_LENGTH),
        "last": clock.first_id(now + HEALTH_PERIOD),
        "failed": last_failure_at,
        "latest": LATEST,
        "not_its_own": list(ERRORS_NOT_OF_ENDPOINT),
    }
    return AttemptSummary._make(queries.row(statements.SUMMARIZE_ATTEMPTS, parameters))


def oldest_due_of_all(now: datetime, *, is_urgent: bool) -> datetime | None:
    """Return the time at which the oldest due delivery of all merchants became due.

    Return None if no delivery is due. This takes one index lookup per endpoint.
    """
    first = Delivery.objects.filter(
        subscription=OuterRef("pk"), status=Delivery.Status.PENDING, lease_token=None, is_urgent=is_urgent
    ).order_by("next_attempt_at")
    due_at = Subquery(first.values("next_attempt_at")[:1])
    rows = Subscription.objects.filter(ended_at=None).annotate(due_at=due_at)
    oldest = rows.aggregate(oldest=Min("due_at"))["oldest"]
    return oldest if oldest is not None and oldest <= now else None


def _count_parked(subscription: Subscription, since: datetime) -> int:
    rows = resending.parked_deliveries(subscription.merchant, since).filter(subscription=subscription)
    return rows[:LATEST].count()


def _oldest_due_at(subscription: Subscription, now: datetime) -> datetime | None:
    """Return the time at which the subscription's oldest due delivery became due, or None.

    This takes two index lookups: one for urgent deliveries, and one for all others.
    """
    waiting = Delivery.objects.filter(subscription=subscription, status=Delivery.Status.PENDING)
    due = waiting.filter(lease_token=None, next_attempt_at__lte=now).order_by("next_attempt_at")
    times = due.values_list("next_attempt_at", flat=True)
    times_due = [times.filter(is_urgent=is_urgent).first() for is_urgent in (True, False)]
    return min((at for at in times_due if at is not None), default=None)
