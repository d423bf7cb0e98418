"""The queue of deliveries in PostgreSQL: claims due deliveries and records the results (rules delivery.*).

`retries.py` decides what an answer means and when the next attempt starts. Each statement is plain SQL and processes
many deliveries. This module does not send requests, so its transactions never wait for a receiver.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import orjson
import structlog
from django.db import InterfaceError, OperationalError, connection, transaction
from psycopg.types.datetime import TimestamptzLoader
from psycopg.types.string import TextLoader

from config.lib import failpoint, redaction
from config.lib.database import partitions, queries
from payments import restore_guard
from webhooks import health, retries, statements, subscriptions
from webhooks.models import PERSONAL, URGENT, Attempt, Delivery

log = structlog.get_logger("webhooks.delivery")

LEASE_SECONDS = 30
PER_ENDPOINT, PER_ENDPOINT_URGENT = 10, 20  # maximum number of attempts in flight at an endpoint
HUNG_IN_A_ROW = 2  # after so many hung attempts in a row, an endpoint counts as hanging until it answers
PER_HUNG, PER_HUNG_URGENT = 1, 5  # maximum number of attempts in flight at an endpoint that hangs
# The pace limit of an endpoint: 10 attempts can start at once, then one every 25 ms, so at most 50 in one second. The
# limit does not apply to urgent deliveries.
BURST, PACE_SECONDS = 10, 0.025
WORKER_LOST = health.WORKER_LOST
WORKER_LOST_TEXT = "our sender was cut off; the request may have arrived"
REASON_CHARACTERS = 80  # maximum length of an endpoint's reason that is shown to people
SWEEP_ROWS = 500
DATABASE_ERRORS = (OperationalError, InterfaceError)
CLAIM_LOCK_KEY = 0x636C6D  # first key of the advisory locks on endpoints: "clm" in ASCII


class Claimed(NamedTuple):
    """A delivery that this worker has leased, with everything that is needed for its POST.

    The lease token is the attempt's id. `body` has the stored bytes, from which `models.decrypt_if_personal` makes the
    bytes to send. The secrets are encrypted, and the newest secret comes first. Ids are strings, as they are sent.
    """

    delivery_id: str
    lease_token: str
    attempt_number: int
    claimed_at: datetime
    event_id: str
    event_type: str
    url: str
    is_urgent: bool
    sealed_secrets: Sequence[str]
    merchant_uuid: str
    body: bytes
    checkout_uuid: str | None
    traceparent: str


_EVENT_ID = Claimed._fields.index("event_id")


class Claims(list[Claimed]):
    """The leased deliveries.

    `is_shared` is true if an endpoint with due deliveries was skipped, because another process was claiming its
    deliveries.
    """

    is_shared = False


@dataclass(frozen=True)
class Result:
    """The result of one claimed attempt. `http_status` and `duration_ms` are None if they are unknown."""

    delivery_id: str
    lease_token: str
    http_status: int | None
    error_message: str | None
    duration_ms: int | None
    excerpt: str = ""


class _LeasedDelivery(NamedTuple):
    """A locked delivery with its open attempt, as LOCK_LEASED reads it."""

    delivery_id: str
    lease_token: str
    subscription_id: str
    attempts: int  # scheduled attempts until now, without the attempts that a person requested
    is_resent: bool
    was_delivered: bool  # an earlier attempt succeeded, and a person has sent the delivery again
    returns_at: datetime | None
    started_at: datetime
    now: datetime
    event_type: str
    event_at: datetime
    valid_until: datetime | None
    is_superseded: bool
    is_unsubscribed: bool
    is_elsewhere: (
        bool  # the subscription, and perhaps its URL or secret, has changed since the attempt started
    )
    is_approved: bool  # the address is approved for personal data


class _FinishedAttempt(NamedTuple):
    """The new state of a delivery after an attempt, and the time at which the attempt ended."""

    leased: _LeasedDelivery
    result: Result
    attempt_ended_at: datetime
    status: Delivery.Status
    next_attempt_at: datetime | None


_CLAIM_LIMITS: dict[str, Any] = {
    "claiming": CLAIM_LOCK_KEY,
    "signing": subscriptions.MAX_SIGNING,
    "per_endpoint": PER_ENDPOINT,
    "per_endpoint_urgent": PER_ENDPOINT_URGENT,
    "hung": HUNG_IN_A_ROW,
    "per_hung": PER_HUNG,
    "per_hung_urgent": PER_HUNG_URGENT,
    "burst": BURST,
    "pace": PACE_SECONDS,
    "lease_seconds": LEASE_SECONDS,
}


def claim(*, slots: int, general_slots: int) -> Claims:
    """Lease up to `slots` due deliveries for 30 s and open an attempt for each of them.

    At most `general_slots` of the deliveries are not urgent. An endpoint has at most 10 attempts in flight,
    or 20 including urgent ones. At most 50 attempts that are not urgent start at an endpoint in a second. An
    endpoint that hangs gets fewer attempts. Endpoints with the fewest attempts in flight come first. An
    endpoint at which another process is claiming is skipped. If the database was restored and is not repaired
    yet, no delivery is claimed.
    """
    claims = Claims()
    if restore_guard.is_closed():
        return claims
    room = _CLAIM_LIMITS | {"slots": slots, "general_slots": general_slots}
    with transaction.atomic(savepoint=True), _cursor() as cursor:
        cursor.execute(statements.LOCK_ENDPOINTS, room)
        ((endpoints, claims.is_shared),) = cursor.fetchall()
        if endpoints:
            cursor.execute(statements.CLAIM, room | {"endpoints": endpoints})
            claims.extend(_with_bodies(cursor, cursor.fetchall()))
    return claims


def _with_bodies(cursor: Any, rows: Sequence[tuple[Any, ...]]) -> Iterator[Claimed]:
    """Yield each claimed row together with the data about its event, which become the last fields of Claimed."""
    if not rows:
        return
    cursor.execute(statements.READ_BODIES, {"events": [row[_EVENT_ID] for row in rows]})
    events = {event_id: rest for event_id, *rest in cursor.fetchall()}
    for row in rows:
        yield Claimed._make((*row, *events[row[_EVENT_ID]]))


def record_results(results: Sequence[Result]) -> None:
    """Finish the attempts, and reschedule, end or park their deliveries, in one transaction.

    If a delivery has a different lease token now, its result is ignored. The attempt was then already closed as
    `worker_lost`.
    """
    if not results:
        return
    with transaction.atomic(savepoint=True), _cursor() as cursor:
        by_lease = {result.lease_token: result for result in results}
        ids = [UUID(result.delivery_id) for result in results]
        first, last = partitions.id_range_of(*ids)
        cursor.execute(statements.LOCK_LEASED, {"ids": ids, "first": first, "last": last})
        pairs = (
            (row, by_lease.get(row.lease_token)) for row in map(_LeasedDelivery._make, cursor.fetchall())
        )
        finished = [_finish(row, result) for row, result in pairs if result is not None]
        if finished:
            rows = orjson.dumps([_result_row(row) for row in finished]).decode()
            attempts = [row.leased.lease_token for row in finished]
            cursor.execute(statements.FINISH_ATTEMPTS, {"rows": rows, "attempts": attempts})
        for row in finished:
            failpoint.reach("webhook_recorded", row.leased.delivery_id)
        # This call comes last, because it locks the rows of endpoints. A claim then waits for these locks only during
        # the commit.
        health.record_health([_endpoint_result(row) for row in finished if _concerns_endpoint(row)])


def record_one_by_one(results: Sequence[Result]) -> int:
    """Record each result in its own transaction; return how many were recorded.

    If a result cannot be recorded, the function tries again without the receiver's text. If that fails too, it
    continues with the other results. Raises OperationalError or InterfaceError if the database fails.
    """
    return sum(_try_record(result) or _try_record(replace(result, excerpt="")) for result in results)


def _try_record(result: Result) -> bool:
    try:
        record_results([result])
    except DATABASE_ERRORS:
        raise
    except Exception as error:
        name = type(error).__name__
        log.error("webhook result not recorded", delivery=result.delivery_id, error=name)
        return False
    return True


@contextlib.contextmanager
def _cursor() -> Iterator[Any]:
    """Yield a cursor that reads timestamps with psycopg's own code, and ids as text.

    Django's conversion of timestamps costs as much as reading the rest of a row. Ids would be converted to UUID
    objects, and then back to text.
    """
    # `queries` cannot be used, because the loaders work only on the cursor for which they are registered.
    with connection.cursor() as cursor:
        cursor.adapters.register_loader("timestamptz", TimestamptzLoader)
        cursor.adapters.register_loader("uuid", TextLoader)
        yield cursor


def describe_error(error_message: str | None) -> str | None:
    """Return the error of an attempt as a text for people (rule log.words)."""
    return WORKER_LOST_TEXT if error_message == WORKER_LOST else error_message


def given_reason(attempt: Attempt) -> str:
    """Return the reason that an endpoint gave for refusing an event, as one line, or "".

    The reason is the beginning of the response's body. Secrets, card numbers and phone numbers in it are masked. An
    HTML page does not count as a reason.
    """
    if attempt.is_delivered or not attempt.http_status:
        return ""
    words = " ".join(redaction.blank_secrets(attempt.response_excerpt).split())
    if words.startswith("<"):
        return ""
    return words if len(words) <= REASON_CHARACTERS else f"{words[: REASON_CHARACTERS - 1]}…"


def close_lost_attempts() -> int:
    """Close each attempt with an expired lease as failed; return how many there were."""
    with _cursor() as cursor:
        cursor.execute(statements.FIND_LOST_LEASES, {"rows": SWEEP_ROWS})
        leases = cursor.fetchall()
    lost = [Result(delivery_id, token, None, WORKER_LOST, None) for delivery_id, token in leases]
    try:
        record_results(lost)
    except DATABASE_ERRORS:
        raise
    except Exception:
        return record_one_by_one(lost)
    return len(lost)


def end_obsolete_deliveries() -> int:
    """End due deliveries that must no longer be sent; return how many there were.

    An obsolete delivery has a superseded event, a `valid_until` that has passed, or an ended subscription. As in
    `claim`, a database that was restored and is not repaired yet is not changed.
    """
    if restore_guard.is_closed():
        return 0
    return queries.execute(statements.END_POINTLESS, {"rows": SWEEP_ROWS})


def _finish(leased: _LeasedDelivery, result: Result) -> _FinishedAttempt:
    ended_at = leased.now
    if result.duration_ms is not None:
        ended_at = min(leased.started_at + timedelta(milliseconds=result.duration_ms), leased.now)
    if retries.is_delivered(result.http_status) or leased.was_delivered:
        return _FinishedAttempt(leased, result, ended_at, Delivery.Status.DELIVERED, None)
    if leased.is_superseded:
        return _FinishedAttempt(leased, result, ended_at, Delivery.Status.SUPERSEDED, None)
    next_attempt_at = None if leased.is_unsubscribed else _next_attempt_at(leased, result, ended_at)
    status = Delivery.Status.PARKED if next_attempt_at is None else Delivery.Status.PENDING
    if leased.event_type in PERSONAL and not leased.is_approved:
        # The address has changed during the attempt, and the new address is not approved.
        next_attempt_at = None
    return _FinishedAttempt(leased, result, ended_at, status, next_attempt_at)


def _next_attempt_at(leased: _LeasedDelivery, result: Result, ended_at: datetime) -> datetime | None:
    attempted = retries.AttemptedDelivery(
        event_type=leased.event_type,
        delivery_id=UUID(leased.delivery_id),
        attempts=leased.attempts,
        event_at=leased.event_at,
        ended_at=ended_at,
        valid_until=leased.valid_until,
        # If the answer came from an earlier address, or if an earlier secret was used, the attempt is retried as if
        # there had been no answer.
        http_status=None if leased.is_elsewhere else result.http_status,
    )
    if not leased.is_resent:
        return retries.next_attempt_at(attempted)
    # An attempt that a person requested is not retried. The schedule that it has interrupted continues.
    return retries.resumes_at(leased.returns_at, attempted) if leased.returns_at else None


def _result_row(finished: _FinishedAttempt) -> dict[str, Any]:
    leased, result = finished.leased, finished.result
    return {
        "delivery_id": leased.delivery_id,
        "status": finished.status.value,
        "next_attempt_at": finished.next_attempt_at,
        "ended_at": None if finished.status == Delivery.Status.PENDING else leased.now,
        "is_urgent": leased.event_type in URGENT,
        "attempt_id": leased.lease_token,
        "attempt_ended_at": finished.attempt_ended_at,
        "is_delivered": retries.is_delivered(result.http_status),
        "http_status": result.http_status,
        "error_message": result.error_message,
        "duration_ms": result.duration_ms,
        # Some receivers send the request back, so their answer to a personal event can contain personal data.
        "excerpt": "" if leased.event_type in PERSONAL else result.excerpt,
    }


def _concerns_endpoint(row: _FinishedAttempt) -> bool:
    """Return whether the result counts for the health of the endpoint at its current address.

    A failure on our side does not count, and neither does an attempt at a previous address or with a previous secret.
    """
    return row.result.error_message not in health.ERRORS_NOT_OF_ENDPOINT and not row.leased.is_elsewhere


def _endpoint_result(row: _FinishedAttempt) -> health.AttemptResult:
    result = row.result
    return health.AttemptResult(
        row.leased.subscription_id,
        row.attempt_ended_at,
        result.http_status,
        result.error_message,
        result.duration_ms,
    )
