"""A merchant's webhook endpoint: an HTTP server that verifies, records and answers deliveries."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from tests import event_bodies
from tests.journeys import polling
from tests.serving import Reply, serving
from webhooks import signing


@dataclass(frozen=True)
class Arrival:
    """One delivery that has arrived with a valid signature."""

    arrived_at: float
    headers: dict[str, str]
    body: bytes
    envelope: dict[str, Any]

    @property
    def event_id(self) -> str:
        return self.headers["X-Service-Event-Id"]

    @property
    def attempt(self) -> int:
        return int(self.headers["X-Service-Delivery-Attempt"])


Answer = Callable[[Arrival], int]


class Receiver:
    """A receiver that verifies each delivery with `secrets` (rule signing.verify).

    It answers each verified delivery with the status that `answer` returns.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.secrets: Sequence[str] = ()
        self.arrivals: list[Arrival] = []
        self.refused: list[str] = []
        self.misfits: list[str] = []  # messages about bodies that do not match their event's schema
        self.answer: Answer = lambda arrival: HTTPStatus.OK
        self._released = threading.Event()

    def answer_with(self, status: int) -> None:
        self.answer = lambda arrival: status

    def hang(self) -> None:
        """From now on, accept deliveries, but do not answer them until the receiver is closed."""
        self.answer = self._wait

    def _wait(self, arrival: Arrival) -> int:
        self._released.wait()
        return HTTPStatus.SERVICE_UNAVAILABLE

    def close(self) -> None:
        self._released.set()

    def take(self, headers: dict[str, str], body: bytes) -> int:
        """Verify and record a delivery, and return the status with which to answer it."""
        now = time.time()
        try:
            envelope = signing.verify(headers.get("X-Service-Signature"), body, self.secrets, int(now))
        except signing.VerificationError as error:
            self.refused.append(error.reason)
            return HTTPStatus.BAD_REQUEST
        arrival = Arrival(now, headers, body, envelope)
        self.arrivals.append(arrival)
        self.misfits += event_bodies.problems(envelope)
        return self.answer(arrival)

    def of(self, event_type: str, checkout_uuid: str) -> list[Arrival]:
        """Return the deliveries received so far for one checkout and one event type."""
        return [
            arrival
            for arrival in list(self.arrivals)
            if arrival.envelope["type"] == event_type
            and arrival.envelope["data"].get("checkout_uuid") == checkout_uuid
        ]

    def awaited(
        self, event_type: str, checkout_uuid: str, *, count: int = 1, within: float = 15
    ) -> list[Arrival]:
        """Wait until `count` deliveries for a checkout and an event type have arrived, and return them."""

        def enough() -> list[Arrival] | None:
            found = self.of(event_type, checkout_uuid)
            return found if len(found) >= count else None

        return polling.until(enough, within=within, what=f"delivery {count} of {event_type}")


@contextmanager
def listening() -> Iterator[Receiver]:
    """Run a receiver on 127.0.0.1 for the duration of the block. Fail unless each body matches its event's schema."""
    receiver = Receiver("")
    with serving(lambda asked, body: Reply(receiver.take(dict(asked.headers.items()), body))) as address:
        receiver.url = f"{address}/webhooks"
        try:
            yield receiver
        finally:
            receiver.close()
    assert receiver.misfits == []
