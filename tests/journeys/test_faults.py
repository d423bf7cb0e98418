import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.journeys import deployment as deployments
from tests.journeys.deployment import Deployment
from tests.journeys.merchant import Json, Merchant, unix
from tests.journeys.receiver import Receiver
from tests.journeys.service import Service
from webhooks import delivery

pytestmark = [pytest.mark.journey, pytest.mark.long]

# The longest allowed delay of an event in seconds, even if a process or Redis does not work.
PROMPT = 3.0
# How many seconds the sandbox bank takes to settle a refund.
REFUND_SECONDS = 2.0
# The longest allowed time in seconds until a call is answered.
ANSWER = 3.0
LEASES_OVER = """
UPDATE webhooks_delivery SET lease_until = clock_timestamp() WHERE lease_token IS NOT NULL RETURNING id
"""
REFUND_TIMES = """
SELECT refund.created_at, call.settles_at, refund.settled_at
FROM checkout_refund refund
JOIN payments_operation operation ON operation.refund_uuid = refund.id
JOIN bank_call call ON call.key = operation.id
WHERE refund.checkout_id = %s
"""


@pytest.fixture(scope="module")
def _parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployment, Service]]:
    with deployments.running(tmp_path_factory.mktemp("deployment")) as parts:
        yield parts


@pytest.fixture
def deployment(_parts: tuple[Deployment, Service]) -> Iterator[Deployment]:
    """Yield the deployment, and repair it after the test."""
    yield _parts[0]
    assert _parts[0].are_alive(), "a part has ended by itself"
    _parts[0].make_whole()


@pytest.fixture
def service(_parts: tuple[Deployment, Service]) -> Service:
    return _parts[1]


def hold_ends_soon(merchant: Merchant) -> tuple[str, str]:
    """Return a checkout whose hold ends in about two seconds, and the time when it ends."""
    checkout_uuid = merchant.held()
    return checkout_uuid, merchant.advance(checkout_uuid, 118)["capture_before"]


def lapses_in_time(receiver: Receiver, checkout_uuid: str, deadline: str) -> None:
    """Fail unless the merchant is notified within three seconds that the hold has lapsed.

    No request causes this notification.
    """
    left = unix(deadline) - time.time()
    (told,) = receiver.awaited("checkout.voided", checkout_uuid, within=left + 2 * PROMPT)
    assert 0 <= told.arrived_at - unix(deadline) < PROMPT


def settles_in_time(deployment: Deployment, merchant: Merchant, checkout_uuid: str) -> None:
    """Fail unless the bank gets the refund within three seconds of the call.

    After the bank has settled the refund, the service must record this within three seconds.
    """
    merchant.awaited(checkout_uuid, "refunded", within=REFUND_SECONDS + 2 * PROMPT)
    accepted_at, settles_at, settled_at = deployment.one_row(REFUND_TIMES, checkout_uuid)
    assert settles_at - accepted_at < timedelta(seconds=REFUND_SECONDS + PROMPT)
    assert timedelta(0) <= settled_at - settles_at < timedelta(seconds=PROMPT)


def told_in_time(receiver: Receiver, event_type: str, checkout: Json, moment: str) -> None:
    """Fail unless the event arrives within three seconds of the time in the checkout's field `moment`."""
    (told,) = receiver.awaited(event_type, checkout["checkout_uuid"], within=2 * PROMPT)
    assert told.arrived_at - unix(checkout[moment]) < PROMPT


def goes_on(deployment: Deployment, merchant: Merchant, receiver: Receiver) -> None:
    """Fail unless calls of all kinds are answered in time and take effect in time."""
    with merchant.answered_within(ANSWER):
        lapsing, deadline = hold_ends_soon(merchant)
        paid = merchant.pay(merchant.create())
        told_in_time(receiver, "checkout.authorized", paid, "authorized_at")
        assert merchant.capture(paid["checkout_uuid"])["status"] == "captured"
        merchant.refund(paid["checkout_uuid"])
        cancelled = merchant.cancel(merchant.held())
        told_in_time(receiver, "checkout.voided", cancelled, "voided_at")
        lapses_in_time(receiver, lapsing, deadline)
        settles_in_time(deployment, merchant, paid["checkout_uuid"])


@pytest.mark.rule("pump.redis")
class TestValkeyStopped:
    def test_everything_works_during_and_after_the_stop(
        self, deployment: Deployment, subscribed: Merchant, receiver: Receiver
    ) -> None:
        deployment.stop_redis()
        goes_on(deployment, subscribed, receiver)
        deployment.make_whole()
        goes_on(deployment, subscribed, receiver)

    def test_everything_works_for_minutes(
        self, deployment: Deployment, subscribed: Merchant, receiver: Receiver
    ) -> None:
        deployment.stop_redis()
        until = time.monotonic() + 180
        while time.monotonic() < until:
            goes_on(deployment, subscribed, receiver)
        deployment.make_whole()
        goes_on(deployment, subscribed, receiver)

    def test_and_restarted_repeatedly_ends_no_worker(
        self, deployment: Deployment, subscribed: Merchant, receiver: Receiver
    ) -> None:
        """Even if Valkey is stopped several times while tasks are running, no worker ends.

        Earlier, because of a bug, about one of 22 stops ended a worker.
        """
        for times in range(40):
            refunded = subscribed.captured()
            subscribed.refund(refunded)
            time.sleep(times % 10 / 20)
            deployment.stop_redis()
            assert deployment.are_alive(), f"after {times} restarts"
            time.sleep(times % 4 / 2)
            deployment.make_whole()
        time.sleep(5)
        assert deployment.are_alive()
        goes_on(deployment, subscribed, receiver)

    def test_everything_works_while_valkey_does_not_answer(
        self, deployment: Deployment, subscribed: Merchant, receiver: Receiver
    ) -> None:
        deployment.silence_redis()
        goes_on(deployment, subscribed, receiver)


class TestValkeyFlushed:
    def test_nothing_is_lost(self, deployment: Deployment, subscribed: Merchant, receiver: Receiver) -> None:
        receiver.answer_with(500)
        retried = subscribed.held()
        (first,) = receiver.awaited("checkout.authorized", retried)
        refunded = subscribed.captured()
        lapsing, deadline = hold_ends_soon(subscribed)
        due = subscribed.log_of(first.event_id, length=1)[0]["next_attempt_at"]
        receiver.answer_with(200)
        subscribed.refund(refunded)
        deployment.flush_redis()
        lapses_in_time(receiver, lapsing, deadline)
        settles_in_time(deployment, subscribed, refunded)
        _, second = receiver.awaited("checkout.authorized", retried, count=2, within=10)
        assert second.event_id == first.event_id
        assert 0 <= second.arrived_at - unix(due) < PROMPT
        goes_on(deployment, subscribed, receiver)


@pytest.mark.rule("pump.beat")
class TestBeatDead:
    def test_everything_happens_on_time(
        self, deployment: Deployment, subscribed: Merchant, receiver: Receiver
    ) -> None:
        deployment.kill("beat")
        goes_on(deployment, subscribed, receiver)


class TestWorkerKilled:
    @pytest.mark.parametrize("waits", [False, True])
    def test_in_the_middle_of_a_delivery_the_event_is_sent_again(
        self, deployment: Deployment, subscribed: Merchant, receiver: Receiver, waits: bool
    ) -> None:
        receiver.hang()
        checkout_uuid = subscribed.held()
        (cut_off,) = receiver.awaited("checkout.authorized", checkout_uuid)
        deployment.kill("worker")
        receiver.answer_with(200)
        deployment.make_whole()
        if not waits:
            deployment.one_row(LEASES_OVER)
        _, again = receiver.awaited("checkout.authorized", checkout_uuid, count=2, within=40 if waits else 12)
        assert (again.event_id, again.body) == (cut_off.event_id, cut_off.body)
        log = subscribed.log_of(cut_off.event_id, length=2)
        assert [(entry["attempt_number"], entry["error_message"]) for entry in log] == [
            (2, None),
            (1, delivery.WORKER_LOST_TEXT),
        ]
        assert subscribed.capture(checkout_uuid)["status"] == "captured"

    def test_due_work_happens_when_the_next_worker_starts(
        self, deployment: Deployment, subscribed: Merchant, receiver: Receiver
    ) -> None:
        deployment.kill("worker")
        refunded = subscribed.captured()
        subscribed.refund(refunded)
        lapsed = subscribed.held()
        subscribed.advance(lapsed, 119)
        assert receiver.arrivals == []
        deployment.make_whole()
        receiver.awaited("checkout.voided", lapsed, within=PROMPT)
        subscribed.awaited(refunded, "refunded", within=REFUND_SECONDS + PROMPT)
