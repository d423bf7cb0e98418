"""The sender in a worker process delivers events, with real receivers and a real database."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import standardwebhooks
import stripe
from django.db import connection, transaction
from structlog.testing import capture_logs

from config.lib import clock
from payments.models import Merchant
from tests.config.local.living import within
from tests.webhooks.receivers.endpoint import Receiver
from webhooks import delivery, delivery_sender, outbox, signing, transport
from webhooks.models import Attempt, Delivery, Event, EventType, SigningSecret, Subscription

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def receiving() -> Iterator[Callable[..., Receiver]]:
    receivers: list[Receiver] = []

    def start(**behaviour: float) -> Receiver:
        receivers.append(Receiver(**behaviour))  # type: ignore[arg-type]  # the values are ints and floats
        return receivers[-1]

    yield start
    for receiver in receivers:
        receiver.close()


@contextlib.contextmanager
def running(slots: int = 100) -> Iterator[delivery_sender.Sender]:
    sender = delivery_sender.Sender(slots=slots, allow_loopback=True)
    sender.start()
    try:
        yield sender
    finally:
        sender.stop(0)


@pytest.fixture
def sender() -> Iterator[delivery_sender.Sender]:
    with running() as sender:
        yield sender


CLAIM = delivery.claim


class SlowClaims:
    """A replacement for `delivery.claim`.

    If `are_slow` is true, a claim that has found rows waits for `goes_on` before it returns.
    """

    def __init__(self) -> None:
        self.are_slow = False
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def __call__(self, **room: int) -> list[delivery.Claimed]:
        claimed = CLAIM(**room)
        if self.are_slow and claimed:
            self.begun.set()
            self.goes_on.wait(10)
        return claimed


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> SlowClaims:
    slow = SlowClaims()
    monkeypatch.setattr(delivery, "claim", slow)
    return slow


def subscribe(url: str, secret: str | None = None) -> Subscription:
    merchant = Merchant.objects.create(name="Acme")
    subscription = Subscription.objects.create(
        merchant=merchant, url=url, event_types=["*"], is_approved=True
    )
    SigningSecret.objects.create(subscription=subscription, secret=secret or signing.new_secret())
    return subscription


def emit(subscription: Subscription, event_type: EventType = EventType.VOIDED) -> Delivery:
    event = outbox.emit(subscription.merchant, event_type, {"amount": 100}, at=clock.now())
    return event.deliveries.get()


def has_status(due: Delivery, status: str) -> Callable[[], bool]:
    return lambda: Delivery.objects.get(pk=due.pk).status == status


class TestSending:
    def test_delivers_what_foreign_libraries_verify(
        self, receiving: Callable[..., Receiver], sender: delivery_sender.Sender
    ) -> None:
        receiver = receiving()
        old, new = signing.new_secret(), signing.new_secret()
        subscription = subscribe(receiver.url, old)
        subscription.secrets.update(expires_at=clock.now() + timedelta(hours=2))
        SigningSecret.objects.create(subscription=subscription, secret=new)
        due = emit(subscription, EventType.AUTHORIZED)
        sender.wake()
        assert within(10, has_status(due, "delivered"))
        ((headers, body),) = receiver.requests
        assert body == bytes(due.event.body)
        for secret in (new, old):
            assert stripe.WebhookSignature.verify_header(
                body.decode(), headers["X-Service-Signature"], secret, 300
            )
            assert standardwebhooks.Webhook(secret).verify(
                body, {name.lower(): value for name, value in headers.items()}
            )
        assert headers["X-Service-Signature"].startswith(f"t={headers['X-Service-Timestamp']},v1=")
        assert headers["X-Service-Event-Id"] == str(due.event_id)
        assert headers["X-Service-Event-Type"] == "checkout.authorized"
        assert headers["X-Service-Delivery-Attempt"] == "1"
        assert headers["Content-Type"] == "application/json"
        assert headers["User-Agent"] == "MerchantCheckout-Webhooks/1"

    def test_finds_due_rows_without_a_wake_up(
        self, receiving: Callable[..., Receiver], sender: delivery_sender.Sender
    ) -> None:
        due = emit(subscribe(receiving().url))
        assert within(10, has_status(due, "delivered"))

    def test_logs_a_line_for_each_attempt(
        self, receiving: Callable[..., Receiver], sender: delivery_sender.Sender
    ) -> None:
        due, refused = emit(subscribe(receiving().url)), emit(subscribe(receiving(http_status=500).url))
        with capture_logs() as lines:
            sender.wake()
            assert within(10, has_status(due, "delivered"))
            assert within(10, lambda: Attempt.objects.filter(http_status=500).exists())
        told = {(line["outcome"], line["delivery"], line["status"]) for line in lines}
        assert told == {("delivered", str(due.pk), 200), ("refused", str(refused.pk), 500)}

    def test_records_half_its_slots_at_once_and_fewer_after_a_short_wait(
        self, receiving: Callable[..., Receiver], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(delivery_sender, "GATHER_SECONDS", 60.0)
        acme = subscribe(receiving().url)
        with running(slots=12) as sender:
            first = [emit(acme) for _ in range(6)]
            sender.wake()
            assert within(10, lambda: all(has_status(due, "delivered")() for due in first))
            monkeypatch.setattr(delivery_sender, "GATHER_SECONDS", 0.03)
            last = emit(acme)
            sender.wake()
            assert within(10, has_status(last, "delivered"))

    @pytest.mark.rule("event.same_bytes", "signing.fresh")
    def test_sends_the_same_bytes_again_signed_afresh(
        self, receiving: Callable[..., Receiver], sender: delivery_sender.Sender
    ) -> None:
        receiver = receiving(http_status=500)
        due = emit(subscribe(receiver.url))
        sender.wake()
        assert within(10, lambda: Attempt.objects.filter(http_status=500).count() == 1)
        receiver.http_status = 200
        time.sleep(1.01 - time.time() % 1)  # wait for the next second, so that the signature changes
        Delivery.objects.update(next_attempt_at=clock.now())
        sender.wake()
        assert within(10, has_status(due, "delivered"))
        (first, first_body), (second, second_body) = receiver.requests
        assert first_body == second_body
        assert first["X-Service-Signature"] != second["X-Service-Signature"]
        assert first["webhook-id"] == second["webhook-id"]
        assert second["X-Service-Delivery-Attempt"] == "2"

    @pytest.mark.rule("delivery.fair")
    def test_a_hanging_endpoint_delays_no_other_and_holds_ten_at_most(
        self, receiving: Callable[..., Receiver], sender: delivery_sender.Sender
    ) -> None:
        hanging, healthy = receiving(seconds=30.0), receiving()
        stuck, acme = subscribe(hanging.url), subscribe(healthy.url)
        for _ in range(30):
            emit(stuck)
        sender.wake()
        assert within(10, lambda: hanging.at_once == 10)
        deliveries = [emit(acme) for _ in range(30)]
        sender.wake()
        assert within(10, lambda: all(has_status(due, "delivered")() for due in deliveries))
        assert hanging.max_at_once == 10 and len(hanging.requests) == 10

    def test_uses_at_most_its_slots_and_keeps_two_in_five_for_holds(
        self, receiving: Callable[..., Receiver]
    ) -> None:
        patient, urgent = [receiving(seconds=30.0) for _ in range(2)], receiving(seconds=30.0)
        for acme in [subscribe(receiver.url) for receiver in patient]:
            for _ in range(10):
                emit(acme)
        with running(slots=10) as sender:
            assert within(10, lambda: sum(receiver.at_once for receiver in patient) == 6)
            holds = subscribe(urgent.url)
            for _ in range(10):
                emit(holds, EventType.AUTHORIZED)
            sender.wake()
            assert within(10, lambda: urgent.at_once == 4)
            # During this time, the sender checks the queue again. It must not start more attempts.
            time.sleep(1.2)
            assert (sum(receiver.at_once for receiver in patient), urgent.at_once) == (6, 4)

    def test_a_delivery_that_cannot_be_signed_does_not_affect_others(
        self, receiving: Callable[..., Receiver], sender: delivery_sender.Sender
    ) -> None:
        receiver = receiving()
        broken, fine = subscribe(receiver.url), subscribe(receiver.url)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE webhooks_signingsecret SET secret = 'x' WHERE subscription_id = %s", [broken.pk]
            )
        unsigned, signed = emit(broken), emit(fine)
        sender.wake()
        assert within(10, has_status(signed, "delivered"))
        assert within(10, lambda: Attempt.objects.filter(delivery=unsigned, ended_at__isnull=False).exists())
        assert unsigned.attempts.get().error_message == "the request could not be sent"
        assert len(receiver.requests) == 1

    def test_a_body_that_has_been_deleted_is_not_sent(
        self, receiving: Callable[..., Receiver], sender: delivery_sender.Sender
    ) -> None:
        receiver = receiving()
        # One transaction is needed, because the sender wakes up when an event is committed.
        with transaction.atomic():
            due = emit(subscribe(receiver.url), EventType.OPTED_IN)
            Event.objects.update(body=b"", body_deleted_at=clock.now())
        sender.wake()
        assert within(10, lambda: Attempt.objects.filter(delivery=due, ended_at__isnull=False).exists())
        assert due.attempts.get().error_message == "its personal data has been deleted"
        assert receiver.requests == []

    @pytest.mark.rule("target.each_connection")
    def test_an_internal_address_is_never_connected_to(self, receiving: Callable[..., Receiver]) -> None:
        canary = receiving()
        due = emit(subscribe(canary.url))
        strict = delivery_sender.Sender(slots=10, allow_loopback=False)
        strict.start()
        strict.wake()
        assert within(10, lambda: Attempt.objects.filter(error_message="address not allowed").exists())
        strict.stop(0)
        assert canary.requests == []
        assert "127.0.0.1" not in (due.attempts.get().error_message or "")

    def test_survives_the_loss_of_its_database_connection(
        self, receiving: Callable[..., Receiver], sender: delivery_sender.Sender
    ) -> None:
        acme = subscribe(receiving().url)
        assert within(10, has_status(emit(acme), "delivered"))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        assert within(10, has_status(emit(acme), "delivered"))

    @pytest.mark.rule("delivery.lost_worker")
    def test_ends_attempts_of_a_dead_worker_and_sends_them_again(
        self, receiving: Callable[..., Receiver], sender: delivery_sender.Sender
    ) -> None:
        receiver = receiving()
        sender.stop(0)
        due = emit(subscribe(receiver.url), EventType.AUTHORIZED)
        delivery.claim(slots=1, general_slots=1)
        Delivery.objects.update(lease_until=clock.now())
        successor = delivery_sender.Sender(slots=10, allow_loopback=True)
        successor.start()
        assert within(10, lambda: Attempt.objects.filter(error_message="worker_lost").exists())
        Delivery.objects.update(next_attempt_at=clock.now())
        successor.wake()
        assert within(10, has_status(due, "delivered"))
        successor.stop(0)
        assert [attempt.number for attempt in due.attempts.order_by("number")] == [1, 2]


class TestASlowClaim:
    def test_does_not_delay_the_recording_of_results(
        self, receiving: Callable[..., Receiver], claims: SlowClaims
    ) -> None:
        receiver = receiving(seconds=30.0)
        due = emit(subscribe(receiver.url))
        with running() as sender:
            assert within(10, lambda: receiver.at_once == 1)
            claims.are_slow = True
            emit(subscribe(receiving().url))
            sender.wake()
            assert claims.begun.wait(10)
            receiver.released.set()
            assert within(10, has_status(due, "delivered"))
            assert not claims.goes_on.is_set()
            claims.goes_on.set()

    def test_that_outlasts_its_deadline_sends_nothing(
        self, receiving: Callable[..., Receiver], claims: SlowClaims, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transport, "DEADLINE_SECONDS", 0.2)
        claims.are_slow = True
        receiver = receiving()
        due = emit(subscribe(receiver.url))
        with running():
            assert claims.begun.wait(10)
            time.sleep(0.3)
            claims.goes_on.set()
            assert within(10, lambda: Attempt.objects.filter(delivery=due, ended_at__isnull=False).exists())
        assert due.attempts.get().error_message == "the request could not be sent"
        assert receiver.requests == []


class TestStopping:
    @pytest.mark.rule("delivery.drain")
    def test_drains_what_is_in_flight_and_claims_nothing_more(
        self, receiving: Callable[..., Receiver], sender: delivery_sender.Sender
    ) -> None:
        receiver, idle = receiving(seconds=30.0), receiving()
        acme, other = subscribe(receiver.url), subscribe(idle.url)
        flying = [emit(acme) for _ in range(10)]
        sender.wake()
        assert within(10, lambda: receiver.at_once == 10)
        stopping = threading.Thread(target=sender.stop, args=[5])
        stopping.start()
        assert within(10, lambda: not sender.is_running())
        # If a claim is still running, wait until it has ended, because it could take the next delivery.
        time.sleep(0.5)
        waiting = emit(other)
        time.sleep(0.3)
        receiver.released.set()
        stopping.join()
        assert all(has_status(due, "delivered")() for due in flying)
        assert not waiting.attempts.exists() and not idle.requests

    def test_drains_the_deliveries_of_a_claim_in_progress(
        self, receiving: Callable[..., Receiver], claims: SlowClaims
    ) -> None:
        claims.are_slow = True
        due = emit(subscribe(receiving().url))
        with running() as sender:
            assert claims.begun.wait(10)
            threading.Timer(0.3, claims.goes_on.set).start()
            sender.stop(5)
        assert has_status(due, "delivered")()

    def test_cuts_off_slow_attempts_and_leaves_them_to_the_next_worker(
        self, receiving: Callable[..., Receiver], sender: delivery_sender.Sender
    ) -> None:
        receiver = receiving(seconds=30.0)
        due = emit(subscribe(receiver.url))
        sender.wake()
        assert within(10, lambda: receiver.at_once == 1)
        started = time.monotonic()
        sender.stop(0.2)
        assert time.monotonic() - started < 10
        due.refresh_from_db()
        assert (due.status, due.lease_token) == ("pending", None)
        assert due.attempts.get().error_message == "worker_lost"

    def test_outside_local_mode_waits_longer_than_any_attempt(self) -> None:
        sandbox = {"ENVIRONMENT": "sandbox", "BASE_URL": "https://sandbox.example", "CHECKOUT_PAGE_URL": ""}
        tell = "import django; django.setup(); from webhooks import tasks; print(tasks.DRAIN_SECONDS)"
        told = subprocess.run(
            [sys.executable, "-c", tell],
            env={**os.environ, **sandbox, "DJANGO_SETTINGS_MODULE": "config.settings"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert float(told.stdout) > transport.DEADLINE_SECONDS

    def test_an_idle_sender_stops_at_once(self, sender: delivery_sender.Sender) -> None:
        started = time.monotonic()
        sender.stop(30)
        assert time.monotonic() - started < 10
        assert not sender.is_running()
