"""How claimed deliveries end in a real PostgreSQL: with a result, a lost worker, or an obsolete event."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from django.db import DataError
from pytest_django.fixtures import Settings

from config.lib import clock, failpoint
from payments import restore_guard
from tests.webhooks.story import claim_one, emit, record, register, subscribe, superseded
from webhooks import delivery, retries, subscriptions
from webhooks.models import Attempt, Delivery, EventType, Subscription

pytestmark = pytest.mark.django_db

NO_ANSWER = (None, "could not connect", 4)


class TestRecord:
    @pytest.mark.rule("delivery.delivered")
    def test_a_2xx_delivers(self) -> None:
        due = emit(subscribe())
        record(claim_one(), 204, None, 12)
        due.refresh_from_db()
        attempt = due.attempts.get()
        assert (due.status, due.next_attempt_at, due.lease_token) == ("delivered", None, None)
        assert due.ended_at is not None
        assert (attempt.http_status, attempt.error_message, attempt.duration_ms) == (204, None, 12)
        assert attempt.response_excerpt == "text"

    def test_a_failure_is_retried_when_the_policy_says(self) -> None:
        due = emit(subscribe())
        record(claim_one(), 500, "HTTP 500", 0)
        due.refresh_from_db()
        attempt = due.attempts.get()
        assert attempt.ended_at == attempt.started_at
        gap = timedelta(seconds=60 * retries.jitter_factor(due.pk, 1))
        assert due.next_attempt_at == attempt.ended_at + gap
        assert (due.status, due.lease_token, due.ended_at) == ("pending", None, None)

    def test_authorized_starts_again_at_its_offset_from_the_event(self) -> None:
        due = emit(subscribe(), EventType.AUTHORIZED, valid_for=120)
        record(claim_one(), *NO_ANSWER)
        due.refresh_from_db()
        assert due.next_attempt_at == due.event.created_at + timedelta(
            seconds=5 * retries.jitter_factor(due.pk, 1)
        )

    def test_authorized_is_parked_at_once_by_a_final_response(self) -> None:
        due = emit(subscribe(), EventType.AUTHORIZED, valid_for=120)
        record(claim_one(), 400, "HTTP 400", 3)
        due.refresh_from_db()
        assert (due.status, due.next_attempt_at) == ("parked", None)

    @pytest.mark.rule("delivery.last_word")
    @pytest.mark.parametrize("is_rotated", [True, False])
    def test_authorized_is_retried_if_secret_or_address_has_changed_during_the_attempt(
        self, is_rotated: bool
    ) -> None:
        subscription = subscribe()
        due = emit(subscription, EventType.AUTHORIZED, valid_for=120)
        claimed = claim_one()
        if is_rotated:
            subscriptions.rotate(subscription.merchant)
        else:
            register(subscription.merchant)
        record(claimed, 400, "HTTP 400", 3)
        due.refresh_from_db()
        assert due.status == "pending" and due.next_attempt_at is not None

    def test_authorized_is_parked_when_no_start_is_left_in_its_window(self) -> None:
        due = emit(subscribe(), EventType.AUTHORIZED, valid_for=4)
        record(claim_one(), 500, "HTTP 500", 3)
        due.refresh_from_db()
        assert due.status == "parked"

    @pytest.mark.parametrize(("http_status", "status"), [(500, "superseded"), (200, "delivered")])
    def test_an_attempt_in_flight_keeps_its_result_when_its_event_is_superseded(
        self, http_status: int, status: str
    ) -> None:
        due = emit(subscribe(), EventType.AUTHORIZED, valid_for=120)
        claimed = claim_one()
        due.event.superseded_at = clock.now()
        due.event.save()
        record(claimed, http_status, None, 3)
        due.refresh_from_db()
        assert (due.status, due.next_attempt_at) == (status, None)

    def test_a_failure_after_the_subscription_ended_is_parked(self) -> None:
        due = emit(subscribe())
        claimed = claim_one()
        Subscription.objects.update(ended_at=clock.now())
        record(claimed, *NO_ANSWER)
        due.refresh_from_db()
        assert due.status == "parked"

    def test_ignores_a_result_whose_lease_is_not_its_own(self) -> None:
        due = emit(subscribe())
        claimed = claim_one()
        delivery.record_results([delivery.Result(claimed.delivery_id, str(uuid4()), 200, None, 3)])
        due.refresh_from_db()
        assert (due.status, due.lease_token) == ("pending", UUID(claimed.lease_token))
        assert due.attempts.get().ended_at is None

    def test_changes_nothing_if_the_process_dies_before_the_commit(
        self, settings: Settings, tmp_path: Path
    ) -> None:
        due = emit(subscribe())
        claimed = claim_one()
        settings.FAIL_POINTS = str(tmp_path)
        (tmp_path / f"webhook_recorded.{due.pk}").write_text("raise")
        with pytest.raises(failpoint.Failed):
            record(claimed, 200)
        due.refresh_from_db()
        assert (due.status, str(due.lease_token)) == ("pending", claimed.lease_token)
        record(claimed, 200)
        due.refresh_from_db()
        assert due.status == "delivered"

    def test_records_each_result_of_a_batch_separately(self) -> None:
        acme = subscribe()
        for _ in range(3):
            emit(acme)
        answers = (200, 500, None)
        claimed = delivery.claim(slots=3, general_slots=3)
        results = [
            delivery.Result(row.delivery_id, row.lease_token, status, None, 1)
            for row, status in zip(claimed, answers, strict=True)
        ]
        delivery.record_results(results)
        for row, status in zip(claimed, answers, strict=True):
            assert Attempt.objects.get(delivery=UUID(row.delivery_id)).http_status == status
        assert Delivery.objects.filter(status="delivered").get().pk == UUID(claimed[0].delivery_id)

    @pytest.mark.rule("delivery.three_days")
    def test_gives_a_dead_endpoint_nine_attempts_over_three_days_and_parks(self) -> None:
        due = emit(subscribe())
        gaps = []
        for _ in range(9):
            before = due.next_attempt_at
            record(claim_one(), 410, "HTTP 410", 0)
            due.refresh_from_db()
            if due.next_attempt_at is not None and before is not None:
                gaps.append(due.next_attempt_at - clock.now())
                Delivery.objects.update(next_attempt_at=clock.now())
        assert (due.status, due.attempt_count, due.attempts.count()) == ("parked", 9, 9)
        assert gaps == sorted(gaps) and timedelta(hours=64) < sum(gaps, timedelta()) < timedelta(hours=80)


class TestFailedClaim:
    def test_leases_no_delivery(self) -> None:
        due = emit(subscribe())
        with pytest.raises(DataError):
            delivery.claim(slots=-1, general_slots=1)
        due.refresh_from_db()
        assert due.lease_token is None
        assert claim_one().delivery_id == str(due.pk)


class TestCloseLost:
    def lose(self) -> tuple[Delivery, delivery.Claimed]:
        due = emit(subscribe(), EventType.AUTHORIZED, valid_for=120)
        claimed = claim_one()
        Delivery.objects.update(lease_until=datetime(2020, 1, 1, tzinfo=UTC))
        return due, claimed

    @pytest.mark.rule("delivery.lost_worker")
    def test_closes_the_attempt_of_a_lease_that_ran_out_and_counts_it(self) -> None:
        due, _ = self.lose()
        assert delivery.close_lost_attempts() == 1
        due.refresh_from_db()
        attempt = due.attempts.get()
        assert (attempt.error_message, attempt.http_status, attempt.duration_ms) == (
            "worker_lost",
            None,
            None,
        )
        assert attempt.ended_at is not None
        assert (due.status, due.attempt_count, due.lease_token) == ("pending", 1, None)
        assert due.next_attempt_at is not None and due.next_attempt_at > attempt.ended_at

    def test_closes_the_others_if_one_cannot_be_recorded(self) -> None:
        unknown, _ = self.lose()
        Delivery.objects.filter(pk=unknown.pk).update(event_type="of.a.later.release")
        due, _ = self.lose()
        assert delivery.close_lost_attempts() == 1
        due.refresh_from_db()
        assert due.attempts.get().error_message == "worker_lost"
        assert delivery.claim(slots=10, general_slots=10) == []

    def test_does_not_close_a_valid_lease(self) -> None:
        emit(subscribe())
        claim_one()
        assert delivery.close_lost_attempts() == 0

    @pytest.mark.rule("delivery.lost_worker")
    def test_the_late_result_of_a_lost_worker_changes_nothing(self) -> None:
        due, claimed = self.lose()
        delivery.close_lost_attempts()
        record(claimed, 200, None, 5)
        due.refresh_from_db()
        assert due.status == "pending"
        assert due.attempts.get().error_message == "worker_lost"


class TestGivenReason:
    def test_is_empty_for_an_attempt_that_was_delivered(self) -> None:
        due = emit(subscribe())
        record(claim_one(), 200)
        assert due.attempts.get().response_excerpt == "text"
        assert delivery.given_reason(due.attempts.get()) == ""

    @pytest.mark.rule("log.words")
    @pytest.mark.parametrize(("length", "ending"), [(80, "aa"), (81, "a…")])
    def test_has_at_most_eighty_characters(self, length: int, ending: str) -> None:
        attempt = Attempt(http_status=400, response_excerpt="a" * length)
        reason = delivery.given_reason(attempt)
        assert (len(reason), reason[-2:]) == (80, ending)


class TestEndPointless:
    def test_changes_no_database_that_was_restored_and_is_not_repaired(self, settings: Settings) -> None:
        superseded(emit(subscribe(), EventType.AUTHORIZED, valid_for=120))
        settings.DATABASE_RESTORED = "2026-11-23"
        restore_guard._is_open.invalidate()
        assert delivery.end_obsolete_deliveries() == 0
        assert Delivery.objects.get().status == "pending"

    def test_supersedes_deliveries_of_superseded_events(self) -> None:
        due = emit(subscribe(), EventType.AUTHORIZED, valid_for=120)
        superseded(due)
        assert delivery.end_obsolete_deliveries() == 1
        due.refresh_from_db()
        assert (due.status, due.next_attempt_at) == ("superseded", None)
        assert due.ended_at is not None

    def test_parks_deliveries_past_their_window_or_without_a_subscription(self) -> None:
        late = emit(subscribe(), EventType.AUTHORIZED, valid_for=-1)
        rival = subscribe("Rival")
        unwanted = emit(rival)
        Subscription.objects.filter(pk=rival.pk).update(ended_at=clock.now())
        assert delivery.end_obsolete_deliveries() == 2
        assert set(Delivery.objects.filter(status="parked")) == {late, unwanted}

    def test_keeps_deliveries_that_are_leased_or_still_useful(self) -> None:
        emit(subscribe(), EventType.AUTHORIZED, valid_for=120)
        leased = emit(subscribe("Rival"), EventType.AUTHORIZED, valid_for=120)
        delivery.claim(slots=10, general_slots=10)
        superseded(leased)
        assert delivery.end_obsolete_deliveries() == 0


@pytest.mark.rule("restore.closed")
def test_no_delivery_is_claimed_in_a_restored_database(settings: Settings) -> None:
    emit(subscribe())
    settings.DATABASE_RESTORED = "2026-11-23"
    restore_guard._is_open.invalidate()
    claims = delivery.claim(slots=10, general_slots=10)
    assert (claims, claims.is_shared) == ([], False)
