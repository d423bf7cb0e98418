"""The queue of deliveries on a real PostgreSQL: leases, caps, outcomes, lost workers."""

import threading
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction

from config.lib import clock, crypto
from payments.models import Merchant
from webhooks import delivery, outbox, retries
from webhooks.models import Attempt, Delivery, EventType, SigningSecret, Subscription

pytestmark = pytest.mark.django_db

NO_ANSWER = (None, "could not connect", 4)


def subscribe(name: str = "Acme") -> Subscription:
    """A merchant's subscription to everything, with its signing secret."""
    merchant = Merchant.objects.create(name=name)
    subscription = Subscription.objects.create(
        merchant=merchant, url="https://shop.example.com/hooks", event_types=["*"]
    )
    SigningSecret.objects.create(subscription=subscription, secret=f"whsec_{name}")
    return subscription


def emit(
    subscription: Subscription, event_type: EventType = EventType.VOIDED, *, valid_for: float | None = None
) -> Delivery:
    """The delivery of an event that happened just now."""
    now = clock.now()
    valid_until = None if valid_for is None else now + timedelta(seconds=valid_for)
    event = outbox.emit(subscription.merchant, event_type, {}, at=now, valid_until=valid_until)
    return event.deliveries.get()


def claim_one() -> delivery.Claimed:
    (claimed,) = delivery.claim(slots=10, general_slots=10)
    return claimed


def record(claimed: delivery.Claimed, http_status: int | None, error: str | None, ms: int | None) -> None:
    delivery.record(
        [delivery.Result(claimed.delivery_id, claimed.lease_token, http_status, error, ms, "text")]
    )


def claimed_ids(*, slots: int = 10, general_slots: int = 10) -> set[UUID]:
    return {claimed.delivery_id for claimed in delivery.claim(slots=slots, general_slots=general_slots)}


class TestClaim:
    def test_leases_a_due_delivery_and_opens_its_attempt(self) -> None:
        due = emit(subscribe())
        claimed = claim_one()
        due.refresh_from_db()
        attempt = due.attempts.get()
        assert claimed.delivery_id == due.pk and claimed.lease_token == due.lease_token
        assert claimed.body == bytes(due.event.body) and claimed.event_id == due.event_id
        assert claimed.url == "https://shop.example.com/hooks"
        assert due.lease_until == claimed.claimed_at + timedelta(seconds=30)
        assert (attempt.number, due.attempt_count, claimed.attempt_number) == (1, 1, 1)
        assert (attempt.started_at, attempt.ended_at) == (claimed.claimed_at, None)
        assert attempt.merchant_id == due.merchant_id

    def test_leaves_a_leased_row_alone(self) -> None:
        emit(subscribe())
        claim_one()
        assert claimed_ids() == set()

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE webhooks_delivery SET next_attempt_at = clock_timestamp() + interval '1 second'",
            "UPDATE webhooks_event SET superseded_at = clock_timestamp()",
            "UPDATE webhooks_event SET valid_until = clock_timestamp()",
            "UPDATE webhooks_subscription SET ended_at = clock_timestamp()",
            "UPDATE webhooks_delivery SET status = 'parked', next_attempt_at = NULL, ended_at = created_at"
            " FROM webhooks_event e WHERE e.id = event_id",
        ],
        ids=["not due", "superseded", "window over", "unsubscribed", "parked"],
    )
    def test_leaves_alone_what_must_not_be_sent(self, change: str) -> None:
        emit(subscribe(), EventType.AUTHORIZED, valid_for=100)
        with connection.cursor() as cursor:
            cursor.execute(change)
        assert claimed_ids() == set()
        assert not Attempt.objects.exists()

    def test_hands_out_the_secrets_that_sign_now_newest_first(self) -> None:
        subscription = subscribe()
        now = clock.now()
        subscription.secrets.update(expires_at=now + timedelta(hours=2))
        SigningSecret.objects.create(subscription=subscription, secret="whsec_newest")
        SigningSecret.objects.create(subscription=subscription, secret="whsec_gone", expires_at=now)
        emit(subscription)
        secrets = [crypto.decrypt(sealed) for sealed in claim_one().sealed_secrets]
        assert secrets == ["whsec_newest", "whsec_Acme"]

    def test_takes_no_more_than_its_slots_oldest_first(self) -> None:
        subscription = subscribe()
        first, second, _ = (emit(subscription) for _ in range(3))
        assert claimed_ids(slots=2) == {first.pk, second.pk}

    def test_keeps_slots_for_authorized(self) -> None:
        general, acme = [subscribe(f"shop {number}") for number in range(3)], subscribe()
        waiting = [emit(subscription) for subscription in general]
        urgent = emit(acme, EventType.AUTHORIZED, valid_for=100)
        assert claimed_ids(slots=3, general_slots=1) == {waiting[0].pk, urgent.pk}
        assert claimed_ids(slots=3, general_slots=0) == set()

    def test_takes_authorized_before_what_has_waited_longer(self) -> None:
        subscription = subscribe()
        emit(subscription)
        urgent = emit(subscription, EventType.AUTHORIZED, valid_for=100)
        assert claimed_ids(slots=1) == {urgent.pk}

    def test_holds_ten_in_flight_at_an_endpoint_and_leaves_the_others_theirs(self) -> None:
        acme, rival = subscribe(), subscribe("Rival")
        for _ in range(15):
            emit(acme)
        rivals = emit(rival)
        assert len(claimed_ids(slots=50, general_slots=50) - {rivals.pk}) == 10
        assert Delivery.objects.get(pk=rivals.pk).lease_token is not None
        assert claimed_ids(slots=50, general_slots=50) == set()

    def test_holds_twenty_in_flight_at_an_endpoint_for_authorized(self) -> None:
        acme = subscribe()
        for _ in range(25):
            emit(acme, EventType.AUTHORIZED, valid_for=100)
        emit(acme)
        assert len(claimed_ids(slots=8)) == 8
        assert len(claimed_ids(slots=50, general_slots=50)) == 12
        assert claimed_ids(slots=50, general_slots=50) == set()

    def test_goes_on_at_an_endpoint_when_attempts_end(self) -> None:
        acme = subscribe()
        for _ in range(12):
            emit(acme)
        first = delivery.claim(slots=50, general_slots=50)
        record(first[0], 200, None, 5)
        assert len(claimed_ids()) == 1

    def test_numbers_go_on_when_a_parked_delivery_is_sent_again(self) -> None:
        due = emit(subscribe(), EventType.TEST)
        record(claim_one(), *NO_ANSWER)
        Delivery.objects.update(status="pending", next_attempt_at=clock.now(), ended_at=None)
        assert claim_one().attempt_number == 2
        assert due.attempts.count() == 2


@pytest.mark.django_db(transaction=True)
class TestClaimAtOnce:
    def test_no_two_workers_take_the_same_row_or_overfill_an_endpoint(self) -> None:
        acme = subscribe()
        shops = [subscribe(f"shop {number}") for number in range(20)]
        for subscription in [acme] * 40 + shops * 2:
            emit(subscription)
        taken: list[delivery.Claimed] = []
        together = threading.Barrier(6)

        def work() -> None:
            together.wait()
            while claimed := delivery.claim(slots=7, general_slots=7):
                taken.extend(claimed)
            connection.close()

        workers = [threading.Thread(target=work) for _ in range(6)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        of_acme = Delivery.objects.filter(subscription=acme, lease_token__isnull=False).count()
        assert len({claimed.delivery_id for claimed in taken}) == len(taken) == 10 + 40
        assert of_acme == 10

    def test_a_claim_waits_for_the_one_before_it_and_counts_what_that_took(self) -> None:
        acme = subscribe()
        for _ in range(20):
            emit(acme)
        second: list[set[UUID]] = []

        def work() -> None:
            second.append(claimed_ids(slots=20, general_slots=20))
            connection.close()

        worker = threading.Thread(target=work)
        with transaction.atomic():
            assert len(claimed_ids(slots=20, general_slots=20)) == 10
            worker.start()
            worker.join(0.3)
            assert second == []
        worker.join()
        assert second == [set()]


class TestRecord:
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
        gap = timedelta(seconds=60 * retries.jitter(due.pk, 1))
        assert due.next_attempt_at == attempt.ended_at + gap
        assert (due.status, due.lease_token, due.ended_at) == ("pending", None, None)

    def test_authorized_starts_again_at_its_offset_from_the_event(self) -> None:
        due = emit(subscribe(), EventType.AUTHORIZED, valid_for=120)
        record(claim_one(), *NO_ANSWER)
        due.refresh_from_db()
        assert due.next_attempt_at == due.event.created_at + timedelta(seconds=5 * retries.jitter(due.pk, 1))

    def test_authorized_is_parked_at_once_by_a_last_word(self) -> None:
        due = emit(subscribe(), EventType.AUTHORIZED, valid_for=120)
        record(claim_one(), 400, "HTTP 400", 3)
        due.refresh_from_db()
        assert (due.status, due.next_attempt_at) == ("parked", None)

    def test_authorized_is_parked_when_no_start_is_left_in_its_window(self) -> None:
        due = emit(subscribe(), EventType.AUTHORIZED, valid_for=4)
        record(claim_one(), 500, "HTTP 500", 3)
        due.refresh_from_db()
        assert due.status == "parked"

    @pytest.mark.parametrize(("http_status", "status"), [(500, "superseded"), (200, "delivered")])
    def test_an_attempt_in_flight_stands_when_its_event_is_superseded(
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
        delivery.record([delivery.Result(claimed.delivery_id, uuid4(), 200, None, 3)])
        due.refresh_from_db()
        assert (due.status, due.lease_token) == ("pending", claimed.lease_token)
        assert due.attempts.get().ended_at is None

    def test_finishes_a_batch_each_in_its_own_way(self) -> None:
        acme = subscribe()
        for _ in range(3):
            emit(acme)
        answers = (200, 500, None)
        claimed = delivery.claim(slots=3, general_slots=3)
        results = [
            delivery.Result(row.delivery_id, row.lease_token, status, None, 1)
            for row, status in zip(claimed, answers, strict=True)
        ]
        delivery.record(results)
        for row, status in zip(claimed, answers, strict=True):
            assert Attempt.objects.get(delivery=row.delivery_id).http_status == status
        assert Delivery.objects.filter(status="delivered").get().pk == claimed[0].delivery_id

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


class TestCloseLost:
    def lose(self) -> tuple[Delivery, delivery.Claimed]:
        due = emit(subscribe(), EventType.AUTHORIZED, valid_for=120)
        claimed = claim_one()
        Delivery.objects.update(lease_until=datetime(2020, 1, 1, tzinfo=UTC))
        return due, claimed

    def test_closes_the_attempt_of_a_lease_that_ran_out_and_counts_it(self) -> None:
        due, _ = self.lose()
        assert delivery.close_lost() == 1
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

    def test_leaves_a_living_lease_alone(self) -> None:
        emit(subscribe())
        claim_one()
        assert delivery.close_lost() == 0

    def test_the_late_result_of_a_lost_worker_changes_nothing(self) -> None:
        due, claimed = self.lose()
        delivery.close_lost()
        record(claimed, 200, None, 5)
        due.refresh_from_db()
        assert due.status == "pending"
        assert due.attempts.get().error_message == "worker_lost"


class TestEndPointless:
    def test_supersedes_what_the_merchant_need_not_hear_any_more(self) -> None:
        due = emit(subscribe(), EventType.AUTHORIZED, valid_for=120)
        due.event.superseded_at = clock.now()
        due.event.save()
        assert delivery.end_pointless() == 1
        due.refresh_from_db()
        assert (due.status, due.next_attempt_at) == ("superseded", None)
        assert due.ended_at is not None

    def test_parks_what_is_past_its_window_or_has_no_subscription_left(self) -> None:
        late = emit(subscribe(), EventType.AUTHORIZED, valid_for=-1)
        rival = subscribe("Rival")
        unwanted = emit(rival)
        Subscription.objects.filter(pk=rival.pk).update(ended_at=clock.now())
        assert delivery.end_pointless() == 2
        assert set(Delivery.objects.filter(status="parked")) == {late, unwanted}

    def test_leaves_alone_what_is_leased_or_still_has_a_point(self) -> None:
        emit(subscribe(), EventType.AUTHORIZED, valid_for=120)
        leased = emit(subscribe("Rival"), EventType.AUTHORIZED, valid_for=120)
        delivery.claim(slots=10, general_slots=10)
        leased.event.superseded_at = clock.now()
        leased.event.save()
        assert delivery.end_pointless() == 0
