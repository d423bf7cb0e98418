"""Sends many events to endpoints that store every POST, and checks the conditions that must hold at the end."""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any

import psycopg

from tests.chaos.webhooks import endpoint
from tests.chaos.webhooks.emitting import Emitter
from tests.chaos.webhooks.endpoint import Endpoint
from tests.journeys import polling
from webhooks import retries

AUTHORIZED, VOIDED = "checkout.authorized", "checkout.voided"
BOTH = (AUTHORIZED, VOIDED)
CAP, CAP_URGENT = 10, 20  # limits on the requests in flight at one endpoint (rule delivery.fair)
# Maximum number of seconds between the time in a signature and the arrival of the POST, by a correct clock.
SIGNED_WITHIN = 10.0
DELIVERIES = """
SELECT event_id::text, status, attempt_count FROM webhooks_delivery WHERE merchant_id = ANY(%s::uuid[])
"""
ATTEMPTS = """
SELECT d.event_id::text, a.number, a.ended_at IS NOT NULL, coalesce(a.http_status, 0), coalesce(a.error_message, '')
FROM webhooks_attempt a JOIN webhooks_delivery d ON d.id = a.delivery_id WHERE a.merchant_id = ANY(%s::uuid[])
"""
TIMELINE = """
SELECT e.id::text, d.id, e.type, e.created_at, e.valid_until, a.number, a.started_at, a.ended_at, a.http_status
FROM webhooks_attempt a JOIN webhooks_delivery d ON d.id = a.delivery_id JOIN webhooks_event e ON e.id = d.event_id
WHERE a.merchant_id = ANY(%s::uuid[]) ORDER BY a.number
"""
LOST_AFTER = """
SELECT extract(epoch FROM ended_at - started_at) FROM webhooks_attempt
WHERE error_message = 'worker_lost' AND merchant_id = ANY(%s::uuid[]) ORDER BY 1
"""
END_LEASES = """
UPDATE webhooks_delivery SET lease_until = clock_timestamp()
WHERE lease_token IS NOT NULL AND merchant_id = ANY(%s::uuid[])
"""
ADVANCE = """
UPDATE webhooks_delivery SET next_attempt_at = clock_timestamp()
WHERE status = 'pending' AND lease_token IS NULL AND merchant_id = ANY(%s::uuid[])
"""
Rows = Callable[..., list[tuple[Any, ...]]]
Sent = tuple[str, int]  # an event's id and an attempt number


class Load:
    """Merchants with one endpoint each, and the events that the service sends to these endpoints."""

    def __init__(self, emitter: Emitter, endpoints: Sequence[Endpoint], rows: Rows) -> None:
        self.endpoints = endpoints
        self._emitter, self._rows = emitter, rows
        self._merchants: list[str] = []
        self._emitted: list[Future[list[str]]] = []
        self._cap = CAP
        for one in endpoints:
            made = emitter.ask(act="subscribe", url=one.url).result()
            one.secret = made["signing_secret"]
            self._merchants.append(made["merchant_uuid"])

    def emit(self, count: int, *event_types: str, every: float = 0.0) -> "Future[list[str]]":
        """Start to emit `count` events to the endpoints in turn, with a pause of `every` seconds or without pauses."""
        if AUTHORIZED in event_types:
            self._cap = CAP_URGENT
        emitted = self._emitter.ask(
            act="emit",
            merchants=self._merchants,
            event_types=[kind for kind in event_types for _ in self._merchants],
            count=count,
            every=every,
        )
        self._emitted.append(emitted)
        return emitted

    def held(self, count: int, *, within: float = 10) -> None:
        """Wait until the endpoints together have `count` open requests."""
        polling.until(
            lambda: sum(one.at_once for one in self.endpoints) >= count,
            within=within,
            what=f"{count} requests held",
        )

    def release(self) -> None:
        for one in self.endpoints:
            one.release()

    def end_leases(self) -> None:
        """End all leases of this load's deliveries now."""
        self._rows(END_LEASES, self._merchants)

    def advance(self) -> None:
        """Make every pending attempt due now."""
        self._rows(ADVANCE, self._merchants)

    def deliveries(self) -> dict[str, tuple[str, int]]:
        """For the delivery of each event, return the status and the number of attempts."""
        found = self._rows(DELIVERIES, self._merchants)
        return {event_id: (status, attempts) for event_id, status, attempts in found}

    def attempts(self) -> dict[Sent, tuple[bool, int, str]]:
        """For each attempt in the log, return whether it has ended, its HTTP status or 0, and its error."""
        return {(row[0], row[1]): (row[2], row[3], row[4]) for row in self._rows(ATTEMPTS, self._merchants)}

    def lost(self) -> set[Sent]:
        """Return the attempts that were closed as `worker_lost` because their worker recorded no result."""
        return {sent for sent, (_, _, error) in self.attempts().items() if error == "worker_lost"}

    def posts(self) -> list[Sent]:
        """Return every POST that arrived."""
        return [sent for one in self.endpoints for sent in one.seen()]

    def not_received(self) -> set[Sent]:
        """Return the attempts in the log that no endpoint has received."""
        return set(self.attempts()) - set(self.posts())

    def arrived_twice(self) -> set[str]:
        """Return the events that arrived more than once."""
        times = Counter(event_id for event_id, _ in self.posts())
        return {event_id for event_id, count in times.items() if count > 1}

    def ended(self, *, within: float, advanced: bool = False) -> None:
        """Wait until all events are emitted and every delivery has ended.

        If `advanced` is true, make pending attempts due while waiting.
        """
        for emitted in self._emitted:
            emitted.result(within)

        def has_ended() -> bool:
            if advanced:
                self.advance()
            with contextlib.suppress(psycopg.OperationalError):  # PostgreSQL might be starting
                return all(status != "pending" for status, _ in self.deliveries().values())
            return False

        polling.until(has_ended, within=within, what="the end of every delivery")

    def lateness(self) -> float:
        """Return the longest time, in seconds, from the moment when an attempt was due to its start.

        Raise AssertionError if an attempt started before it was due.
        """
        ended: dict[str, retries.AttemptedDelivery] = {}
        latest = 0.0
        for event_id, attempted, number, started_at in self._timeline():
            before = ended.get(event_id)
            due = attempted.event_at if before is None else retries.next_attempt_at(before)
            assert due is not None and started_at >= due, (
                f"{event_id}: attempt {number} at {started_at}, due {due}"
            )
            latest = max(latest, (started_at - due).total_seconds())
            ended[event_id] = attempted
        return latest

    def _timeline(self) -> Iterator[tuple[str, retries.AttemptedDelivery, int, datetime]]:
        for event_id, delivery_id, kind, event_at, until, number, began, end, status in self._rows(
            TIMELINE, self._merchants
        ):
            attempted = retries.AttemptedDelivery(
                event_type=kind,
                delivery_id=delivery_id,
                attempts=number,
                event_at=event_at,
                ended_at=end,
                valid_until=until,
                http_status=status,
            )
            yield event_id, attempted, number, began

    def delivery_of(self, event_id: str) -> str:
        return str(self._rows("SELECT id FROM webhooks_delivery WHERE event_id = %s", event_id)[0][0])

    def lost_after(self) -> list[float]:
        """For each lost attempt, return the seconds from its start to its end, in ascending order."""
        return [float(row[0]) for row in self._rows(LOST_AFTER, self._merchants)]

    def violations(self) -> list[str]:
        """Return a description of each violation. Lost attempts are not violations, even if they never arrived."""
        return sorted([*self._lost_events(), *self._log(), *self._posts(), *self._receivers()])

    def _lost_events(self) -> Iterator[str]:
        deliveries = self.deliveries()
        for event_id in [one for emitted in self._emitted for one in emitted.result()]:
            status, _ = deliveries.get(event_id, ("missing", 0))
            if status != "delivered":
                yield f"{event_id}: is {status}"

    def _log(self) -> Iterator[str]:
        """Yield violations of the rules for attempts.

        Attempts are numbered from 1 and have ended, and only the last attempt can succeed.
        """
        numbers = defaultdict(list)
        for (event_id, number), (has_ended, _, _) in self.attempts().items():
            numbers[event_id].append(number)
            if not has_ended:
                yield f"{event_id}: attempt {number} is open"
        for event_id, (_, count) in self.deliveries().items():
            if sorted(numbers[event_id]) != list(range(1, count + 1)):
                yield f"{event_id}: {count} attempts, numbered {sorted(numbers[event_id])}"
        for (event_id, number), (_, http_status, error) in self.attempts().items():
            is_last = number == len(numbers[event_id])
            expected = error == "" and http_status == 200 if is_last else error in ("worker_lost", "HTTP 500")
            if not expected:
                yield f"{event_id}: attempt {number} of {len(numbers[event_id])} ended {http_status} {error}"

    def _posts(self) -> Iterator[str]:
        """Yield violations of the rules for POSTs.

        Each POST belongs to one attempt in the log. Only lost attempts can be without a POST.
        """
        attempts, counted = self.attempts(), Counter(self.posts())
        for (event_id, number), times in counted.items():
            if times > 1 or (event_id, number) not in attempts:
                yield f"{event_id}: attempt {number} arrived {times} times"
        for event_id, number in self.not_received() - self.lost():
            yield f"{event_id}: attempt {number} is in the log and has never arrived"

    def _receivers(self) -> Iterator[str]:
        for one in self.endpoints:
            bodies = defaultdict(set)
            for post in one.posts:
                bodies[post.event_id].add(post.body)
                if abs(post.signed_at - post.arrived_at) > SIGNED_WITHIN:
                    yield f"{post.event_id}: signed at {post.signed_at}, arrived at {post.arrived_at}"
            yield from (
                f"{event_id}: {len(found)} bodies" for event_id, found in bodies.items() if len(found) > 1
            )
            yield from (f"{one.url}: refused, {reason}" for reason in one.refused)
            if one.max_at_once > self._cap:
                yield f"{one.url}: {one.max_at_once} in flight at once"


@contextlib.contextmanager
def loading(emitter: Emitter, rows: Rows, *, endpoints: int) -> Iterator[Load]:
    """Run new endpoints for the duration of the block, and yield a load that uses them."""
    with endpoint.listening(endpoints) as listening:
        yield Load(emitter, listening, rows)
