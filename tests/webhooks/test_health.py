"""The portal and the admin show whether an endpoint works, how fast it answers, and since when it fails."""

import time
from datetime import datetime, timedelta

import pytest
from pytest_django import DjangoAssertNumQueries

from config.lib import clock
from tests.webhooks.story import claim_one, emit, record, renamed, subscribe
from webhooks import delivery, health, subscriptions
from webhooks.models import Attempt, Delivery, Endpoint, Event, EventType, Subscription

pytestmark = pytest.mark.django_db


acme = pytest.fixture(subscribe)


def answer(subscription: Subscription, *answers: tuple[int | None, int]) -> None:
    """For each answer, emit one event and record the answer.

    An answer has a status and a duration in milliseconds. The status is None if the endpoint did not answer.
    """
    for http_status, ms in answers:
        emit(subscription)
        error = None if http_status == 200 else f"HTTP {http_status}" if http_status else "could not connect"
        record(claim_one(), http_status, error, ms)
        Endpoint.objects.update(paced_until=None)


class TestHealth:
    def test_of_an_endpoint_that_was_never_called(self, acme: Subscription) -> None:
        found = health.read_health(acme)
        assert (found.attempts, found.success_rate, found.p50_ms, found.last_error) == (0, None, None, "")
        assert (found.oldest_due_at, found.last_success_at, found.failing_since) == (None, None, None)

    def test_shows_rate_and_durations(self, acme: Subscription) -> None:
        answer(acme, *((200, ms) for ms in range(10, 100, 10)), (500, 1000))
        answer(subscribe("Rival"), (None, 5))
        found = health.read_health(acme)
        assert (found.attempts, found.success_rate, found.p50_ms, found.p95_ms) == (10, 0.9, 50, 1000)

    def test_shows_since_when_the_endpoint_fails_and_the_error(self, acme: Subscription) -> None:
        answer(acme, (200, 5), (500, 5), (None, 5))
        first_failure = Attempt.objects.order_by("started_at")[1]
        found = health.read_health(acme)
        assert found.failing_since == first_failure.ended_at
        assert found.last_error == "could not connect" and found.working_since is None
        times = [found.last_success_at, found.failing_since, found.last_failure_at]
        assert None not in times and times == sorted(set(times), key=str)

    def test_of_the_worst_endpoint_does_not_end_its_subscription(self, acme: Subscription) -> None:
        answer(acme, *((None, 15_000) for _ in range(30)))
        Delivery.objects.update(status=Delivery.Status.PARKED, next_attempt_at=None, ended_at=clock.now())
        acme.refresh_from_db()
        assert acme.ended_at is None
        emit(acme)
        assert claim_one().url == acme.url

    def test_one_success_ends_the_failure(self, acme: Subscription) -> None:
        answer(acme, (500, 5), (200, 5))
        found = health.read_health(acme)
        assert found.failing_since is None and found.last_error == "HTTP 500"
        assert found.working_since == found.last_success_at
        answer(acme, (200, 5))
        assert health.read_health(acme).working_since == found.working_since

    def test_without_a_failure_does_not_show_since_when_it_works(self, acme: Subscription) -> None:
        answer(acme, (200, 5))
        assert health.read_health(acme).working_since is None

    def test_of_one_batch_uses_the_order_of_time(self, acme: Subscription) -> None:
        for _ in range(3):
            emit(acme)
        claimed = delivery.claim(slots=3, general_slots=3)
        answers = ((500, 1), (200, 2), (404, 3))
        results = [
            delivery.Result(row.delivery_id, row.lease_token, status, f"HTTP {status}", ms)
            for row, (status, ms) in zip(claimed, answers, strict=True)
        ]
        time.sleep(0.01)  # the attempts take up to 3 ms, and must end before they are recorded
        delivery.record_results(list(reversed(results)))
        found = health.read_health(acme)
        assert found.last_error == "HTTP 404" and found.failing_since == found.last_failure_at

    def test_an_old_failure_that_is_recorded_late_changes_nothing(self, acme: Subscription) -> None:
        for _ in range(2):
            emit(acme)
        one, two = delivery.claim(slots=2, general_slots=2)
        time.sleep(0.05)
        record(two, 200, None, 40)  # it ends after `one`, but is recorded first
        record(one, 500, "HTTP 500", 1)
        found = health.read_health(acme)
        assert found.failing_since is None and found.last_success_at != found.last_failure_at

    def test_does_not_count_deliveries_parked_for_an_ended_subscription(self, acme: Subscription) -> None:
        due = emit(acme)
        Delivery.objects.filter(pk=due.pk).update(status="parked", next_attempt_at=None, ended_at=clock.now())
        subscriptions.end(acme.merchant)
        new = Subscription.objects.create(merchant=acme.merchant, url=acme.url, event_types=["*"])
        assert health.read_health(new).parked == 0

    def test_does_not_count_attempts_that_we_lost(self, acme: Subscription) -> None:
        emit(acme)
        claim_one()
        Delivery.objects.update(lease_until=clock.now() - timedelta(seconds=1))
        delivery.close_lost_attempts()
        found = health.read_health(acme)
        assert (found.attempts, found.last_failure_at, found.failing_since) == (0, None, None)

    def test_shows_waiting_and_parked_deliveries(self, acme: Subscription) -> None:
        oldest, later = emit(acme), emit(acme)
        gone = emit(acme)
        Delivery.objects.filter(pk=later.pk).update(next_attempt_at=clock.now() + timedelta(hours=1))
        Delivery.objects.filter(pk=gone.pk).update(
            status="parked", next_attempt_at=None, ended_at=clock.now()
        )
        found = health.read_health(acme)
        assert (found.oldest_due_at, found.parked) == (oldest.next_attempt_at, 1)

    @pytest.mark.rule("resend.closed")
    @pytest.mark.parametrize(
        ("closed", "hours", "counted"), [(False, 23.9, 1), (True, 23.9, 0), (False, 24.1, 0)]
    )
    def test_counts_what_was_parked_within_a_day_and_is_not_closed(
        self, acme: Subscription, closed: bool, hours: float, counted: int
    ) -> None:
        ended_at = clock.now() - timedelta(hours=hours)
        emit(acme)
        Delivery.objects.update(
            status="parked",
            next_attempt_at=None,
            ended_at=ended_at,
            closed_at=clock.now() if closed else None,
        )
        assert health.read_health(acme).parked == counted

    @pytest.mark.rule("event.test")
    def test_does_not_count_parked_test_events(self, acme: Subscription) -> None:
        emit(acme)
        ended = {"status": "parked", "next_attempt_at": None, "ended_at": clock.now()}
        Delivery.objects.update(event_type="webhook.test", **ended)
        assert health.read_health(acme).parked == 0

    def test_covers_one_day(self, acme: Subscription) -> None:
        answer(acme, (500, 5))
        Attempt.objects.update(started_at=clock.now() - timedelta(hours=24.1))
        assert health.read_health(acme).attempts == 0
        answer(acme, (200, 5))
        found = health.read_health(acme)
        assert (found.attempts, found.success_rate, found.working_since) == (1, 1, None)

    def test_counts_todays_attempts_of_older_deliveries(self, acme: Subscription) -> None:
        answer(acme, (500, 5))
        renamed(Event.objects.get().pk, clock.now() - timedelta(days=4.5))
        assert health.read_health(acme).attempts == 1

    def test_counts_at_most_a_thousand_parked_deliveries(self, acme: Subscription) -> None:
        event = emit(acme).event
        ended = {"status": "parked", "next_attempt_at": None, "ended_at": clock.now()}
        of_acme = {"merchant_id": acme.merchant_id, "subscription_id": acme.pk, "event_type": event.type}
        ids = [clock.new_id_of_same_time(event.pk) for _ in range(1001)]
        Delivery.objects.bulk_create(Delivery(id=pk, event_id=pk, **of_acme, **ended) for pk in ids)
        assert health.read_health(acme).parked == 1000

    def test_shows_the_oldest_due_delivery_even_if_it_is_urgent(self, acme: Subscription) -> None:
        oldest = emit(acme, EventType.AUTHORIZED, valid_for=120)
        emit(acme)
        assert health.read_health(acme).oldest_due_at == oldest.next_attempt_at

    def test_a_failure_at_the_same_moment_as_a_success_does_not_begin_a_failure(
        self, acme: Subscription
    ) -> None:
        now = clock.now()
        results = [health.AttemptResult(str(acme.pk), now, status, None, 5) for status in (200, 500)]
        health.record_health(results)
        assert Endpoint.objects.get().failing_since is None

    def test_costs_eight_statements(
        self, acme: Subscription, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        answer(acme, (200, 5))
        with django_assert_max_num_queries(8):
            health.read_health(acme)


class TestHanging:
    @pytest.mark.parametrize(
        ("http_status", "ms", "has_hung"),
        [(None, 5000, 1), (None, 4999, 0), (None, None, 0), (500, 5000, 0), (200, 5000, 0)],
    )
    def test_is_to_give_no_answer_for_five_seconds(
        self, acme: Subscription, http_status: int | None, ms: int | None, has_hung: int
    ) -> None:
        health.record_health([health.AttemptResult(str(acme.pk), clock.now(), http_status, None, ms)])
        assert Endpoint.objects.get().hung_in_a_row == has_hung

    def test_is_counted_until_an_attempt_gets_an_answer(self, acme: Subscription) -> None:
        answer(acme, (None, 5000), (None, 15_000))
        assert Endpoint.objects.get().hung_in_a_row == 2
        answer(acme, (500, 5000))
        assert Endpoint.objects.get().hung_in_a_row == 0


class TestOldestDueOfAll:
    def emit(self, subscription: Subscription, event_type: EventType = EventType.VOIDED) -> datetime:
        """Emit an event, and return the time at which its delivery became due."""
        due_at = emit(subscription, event_type, valid_for=120).next_attempt_at
        assert due_at is not None
        return due_at

    def test_is_the_oldest_of_all_merchants(self, acme: Subscription) -> None:
        oldest = self.emit(acme)
        self.emit(acme)
        self.emit(subscribe("Rival"))
        urgent = self.emit(acme, EventType.AUTHORIZED)
        now = clock.now()
        assert health.oldest_due_of_all(now, is_urgent=False) == oldest
        assert health.oldest_due_of_all(now, is_urgent=True) == urgent

    def test_is_due_from_its_time_on(self, acme: Subscription) -> None:
        assert health.oldest_due_of_all(clock.now(), is_urgent=False) is None
        due_at = self.emit(acme)
        assert health.oldest_due_of_all(due_at, is_urgent=False) == due_at
        assert health.oldest_due_of_all(due_at - timedelta.resolution, is_urgent=False) is None
