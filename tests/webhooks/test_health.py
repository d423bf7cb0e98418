"""The health of an endpoint, which the portal and the admin show."""

import time
from datetime import timedelta

import pytest
from pytest_django import DjangoAssertNumQueries

from config.lib import clock
from tests.webhooks.story import claim_one, emit, record, subscribe
from webhooks import delivery, health, subscriptions
from webhooks.models import Attempt, Delivery, Endpoint, Subscription

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
    @pytest.mark.parametrize(("closed", "hours", "counted"), [(False, 23, 1), (True, 23, 0), (False, 25, 0)])
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
        Attempt.objects.update(started_at=clock.now() - timedelta(hours=25))
        assert health.read_health(acme).attempts == 0

    def test_costs_eight_statements(
        self, acme: Subscription, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        answer(acme, (200, 5))
        with django_assert_max_num_queries(8):
            health.read_health(acme)
