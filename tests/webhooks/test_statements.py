"""Claims of deliveries on a real PostgreSQL: leases, limits in flight, fair shares and limits on the pace."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction

from config.lib import clock, crypto
from tests.webhooks.story import claim_one, emit, record, subscribe
from webhooks import delivery
from webhooks.models import Attempt, Delivery, Endpoint, EventType, SigningSecret

pytestmark = pytest.mark.django_db

NO_ANSWER = (None, "could not connect", 4)


def claimed_ids(*, slots: int = 10, general_slots: int = 10) -> set[UUID]:
    return {UUID(claimed.delivery_id) for claimed in delivery.claim(slots=slots, general_slots=general_slots)}


class TestClaim:
    def test_leases_a_due_delivery_and_opens_its_attempt(self) -> None:
        due = emit(subscribe())
        claimed = claim_one()
        due.refresh_from_db()
        attempt = due.attempts.get()
        assert (claimed.delivery_id, claimed.lease_token) == (str(due.pk), str(due.lease_token))
        assert claimed.body == bytes(due.event.body) and claimed.event_id == str(due.event_id)
        assert claimed.url == "https://shop.example.com/hooks"
        assert due.lease_until == claimed.claimed_at + timedelta(seconds=30)
        assert (attempt.number, due.attempt_count, claimed.attempt_number) == (1, 1, 1)
        assert (attempt.started_at, attempt.ended_at) == (claimed.claimed_at, None)
        assert attempt.merchant_id == due.merchant_id

    def test_skips_a_leased_row(self) -> None:
        emit(subscribe())
        claim_one()
        assert claimed_ids() == set()

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE webhooks_delivery SET next_attempt_at = clock_timestamp() + interval '1 second'",
            "UPDATE webhooks_delivery SET superseded_at = clock_timestamp()",
            "UPDATE webhooks_delivery SET valid_until = clock_timestamp()",
            "UPDATE webhooks_subscription SET ended_at = clock_timestamp()",
            "UPDATE webhooks_delivery SET status = 'parked', next_attempt_at = NULL, ended_at = created_at"
            " FROM webhooks_event e WHERE e.id = event_id",
        ],
        ids=["not due", "superseded", "window over", "unsubscribed", "parked"],
    )
    def test_skips_deliveries_that_must_not_be_sent(self, change: str) -> None:
        emit(subscribe(), EventType.AUTHORIZED, valid_for=100)
        with connection.cursor() as cursor:
            cursor.execute(change)
        assert claimed_ids() == set()
        assert not Attempt.objects.exists()

    def test_returns_the_current_signing_secrets_newest_first(self) -> None:
        subscription = subscribe()
        now = clock.now()
        subscription.secrets.update(expires_at=now + timedelta(hours=2))
        SigningSecret.objects.create(subscription=subscription, secret="whsec_newest")
        SigningSecret.objects.create(subscription=subscription, secret="whsec_gone", expires_at=now)
        emit(subscription)
        secrets = [crypto.decrypt(sealed) for sealed in claim_one().sealed_secrets]
        assert secrets == ["whsec_newest", "whsec_Acme"]

    def test_takes_at_most_its_slots_oldest_first(self) -> None:
        subscription = subscribe()
        first, second, _ = (emit(subscription) for _ in range(3))
        assert claimed_ids(slots=2) == {first.pk, second.pk}

    @pytest.mark.rule("delivery.fair")
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

    @pytest.mark.rule("delivery.fair")
    def test_allows_ten_in_flight_at_an_endpoint_and_does_not_delay_others(self) -> None:
        acme, rival = subscribe(), subscribe("Rival")
        for _ in range(15):
            emit(acme)
        rivals = emit(rival)
        assert len(claimed_ids(slots=50, general_slots=50) - {rivals.pk}) == 10
        assert Delivery.objects.get(pk=rivals.pk).lease_token is not None
        assert claimed_ids(slots=50, general_slots=50) == set()

    @pytest.mark.rule("delivery.fair")
    def test_allows_twenty_in_flight_at_an_endpoint_for_authorized(self) -> None:
        acme = subscribe()
        for _ in range(25):
            emit(acme, EventType.AUTHORIZED, valid_for=100)
        emit(acme)
        assert len(claimed_ids(slots=8)) == 8
        assert len(claimed_ids(slots=50, general_slots=50)) == 12
        assert claimed_ids(slots=50, general_slots=50) == set()

    def test_continues_at_an_endpoint_when_attempts_end(self) -> None:
        acme = subscribe()
        for _ in range(12):
            emit(acme)
        first = delivery.claim(slots=50, general_slots=50)
        record(first[0], 200)
        Endpoint.objects.update(paced_until=None)
        assert len(claimed_ids()) == 1

    def test_attempt_numbers_continue_when_a_parked_delivery_is_sent_again(self) -> None:
        due = emit(subscribe(), EventType.TEST)
        record(claim_one(), *NO_ANSWER)
        Delivery.objects.update(status="pending", next_attempt_at=clock.now(), ended_at=None)
        assert claim_one().attempt_number == 2
        assert due.attempts.count() == 2


@pytest.mark.django_db(transaction=True)
class TestClaimAtOnce:
    @pytest.mark.rule("delivery.once")
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

    @pytest.mark.rule("delivery.claims")
    def test_a_claim_skips_endpoints_of_a_claim_in_progress_without_waiting(self) -> None:
        acme, rival = subscribe(), subscribe("Rival")
        for _ in range(20):
            emit(acme)
        with claiming_beside() as claim:
            assert len(claim()) == 10  # this claim is committed only at the end of the block
            rivals = emit(rival)
            claims = delivery.claim(slots=20, general_slots=20)
            assert [claimed.delivery_id for claimed in claims] == [str(rivals.pk)]
            assert claims.is_shared
        assert claimed_ids(slots=20, general_slots=20) == set()

    def test_a_claim_counts_attempts_that_started_during_its_search(self) -> None:
        """Check that a claim locks the endpoints before it counts their requests in flight.

        The count therefore includes the rows that another process has just claimed.
        """
        acme = subscribe()
        for _ in range(20):
            emit(acme)
        with claiming_beside() as claim:
            claim()
        claims = delivery.claim(slots=20, general_slots=20)
        assert claims == [] and not claims.is_shared

    def test_a_claim_skips_ended_holds_and_finds_a_current_one(self) -> None:
        """Check a claim after an outage, when more endpoints have ended holds than there are slots.

        The claim must skip the deliveries for ended holds, because only the sweep ends them.
        """
        for number in range(4):
            emit(subscribe(f"shop {number}"), EventType.AUTHORIZED, valid_for=100)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE webhooks_delivery SET valid_until = clock_timestamp()")
        alive = emit(subscribe(), EventType.AUTHORIZED, valid_for=100)
        assert claimed_ids(slots=3) == {alive.pk}


@contextlib.contextmanager
def claiming_beside() -> Iterator[Callable[[], list[delivery.Claimed]]]:
    """Yield a claim function. It runs in another transaction, which commits at the end of the block."""

    def end() -> None:
        in_transaction.__exit__(None, None, None)
        connection.close()

    with ThreadPoolExecutor(1) as thread:
        in_transaction = transaction.atomic()
        thread.submit(in_transaction.__enter__).result()
        try:
            yield lambda: thread.submit(delivery.claim, slots=20, general_slots=20).result()
        finally:
            thread.submit(end).result()


class TestPace:
    def test_allows_ten_starts_at_once_and_then_forty_a_second(self) -> None:
        acme = subscribe()
        for _ in range(60):
            emit(acme)
        now = clock.now()
        for claimed in delivery.claim(slots=50, general_slots=50):
            record(claimed, 200)
        assert Delivery.objects.filter(status="delivered").count() == 10
        (paced_until,) = Endpoint.objects.values_list("paced_until", flat=True)
        assert paced_until is not None and 0.25 <= (paced_until - now).total_seconds() < 1
        Endpoint.objects.update(paced_until=clock.now() + timedelta(seconds=0.25))
        assert len(claimed_ids()) <= 1, "at its limit: one more may have come due meanwhile"
        Endpoint.objects.update(paced_until=clock.now() + timedelta(seconds=0.12))
        assert 5 <= len(claimed_ids()) <= 7

    @pytest.mark.rule("delivery.fair")
    def test_never_more_than_fifty_in_any_second(self) -> None:
        assert delivery.BURST + 1 / delivery.PACE_SECONDS <= 50

    @pytest.mark.parametrize("event_type", [EventType.AUTHORIZED, EventType.TEST])
    def test_does_not_delay_urgent_deliveries(self, event_type: EventType) -> None:
        acme = subscribe()
        urgent = emit(acme, event_type, valid_for=100)
        Endpoint.objects.update_or_create(subscription=acme, defaults={"paced_until": clock.now()})
        Endpoint.objects.update(paced_until=clock.now() + timedelta(hours=1))
        emit(acme)
        assert claimed_ids() == {urgent.pk}
        assert Endpoint.objects.filter(paced_until__gt=clock.now() + timedelta(minutes=59)).exists()

    def test_an_endpoint_at_its_pace_leaves_the_slots_to_others(self) -> None:
        acme, rival = subscribe(), subscribe("Rival")
        for _ in range(30):
            emit(acme)
        Endpoint.objects.create(subscription=acme, paced_until=clock.now() + timedelta(hours=1))
        rivals = emit(rival)
        assert claimed_ids() == {rivals.pk}


class TestTurns:
    def test_the_endpoint_with_the_fewest_in_flight_comes_first(self) -> None:
        acme, rival = subscribe(), subscribe("Rival")
        for _ in range(8):
            emit(acme)
        assert len(claimed_ids(slots=5)) == 5
        rivals = emit(rival)
        assert claimed_ids(slots=1) == {rivals.pk}

    def test_takes_one_of_each_before_a_second_of_any(self) -> None:
        shops = [subscribe(f"shop {number}") for number in range(4)]
        for subscription in shops:
            for _ in range(3):
                emit(subscription)
        taken = Delivery.objects.filter(pk__in=claimed_ids(slots=4))
        assert {row.subscription_id for row in taken} == {subscription.pk for subscription in shops}


class TestHangingEndpoint:
    def hang(self, times: int, ms: int = 15_000) -> None:
        Endpoint.objects.update(paced_until=None)
        for claimed in delivery.claim(slots=times, general_slots=times):
            record(claimed, None, "timeout after 15 s", ms)
        Endpoint.objects.update(paced_until=None)

    @pytest.mark.rule("delivery.fair")
    def test_gets_one_delivery_at_a_time_after_it_hung_twice(self) -> None:
        acme = subscribe()
        for _ in range(30):
            emit(acme)
        self.hang(1)
        assert len(claimed_ids(slots=30, general_slots=30)) == 10
        Delivery.objects.filter(lease_token__isnull=False).update(lease_token=None)
        self.hang(1)
        assert len(claimed_ids(slots=30, general_slots=30)) == 1

    def test_gets_five_holds_at_a_time(self) -> None:
        acme = subscribe()
        for _ in range(2):
            emit(acme)
        self.hang(2)
        for _ in range(9):
            emit(acme, EventType.AUTHORIZED, valid_for=100)
        assert len(claimed_ids(slots=30, general_slots=30)) == 5

    @pytest.mark.parametrize(("http_status", "ms"), [(200, 5), (500, 5), (404, 14_000)])
    def test_gets_the_full_number_again_once_it_responds(self, http_status: int, ms: int) -> None:
        acme = subscribe()
        for _ in range(30):
            emit(acme)
        self.hang(3)
        (claimed,) = delivery.claim(slots=30, general_slots=30)
        record(claimed, http_status, None, ms)
        Endpoint.objects.update(paced_until=None)
        assert len(claimed_ids(slots=30, general_slots=30)) == 10

    def test_one_that_refuses_the_connection_does_not_hang(self) -> None:
        acme = subscribe()
        for _ in range(30):
            emit(acme)
        self.hang(3, ms=4)
        assert len(claimed_ids(slots=30, general_slots=30)) == 10


class TestPlan:
    def test_reads_only_as_many_rows_of_a_backlog_as_it_can_take(self) -> None:
        """Check that a claim of ten rows reads fewer than 200 of the 3,000 rows that are due."""
        for name in ("Acme", "Rival"):
            due = emit(subscribe(name))
            self.multiply(due, 1500)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE webhooks_delivery_pending")
            before = self.rows_read()
            assert len(claimed_ids(slots=10)) == 10
            assert self.rows_read() - before < 200

    def multiply(self, due: Delivery, times: int) -> None:
        events = [type(due.event)(merchant_id=due.merchant_id, type=due.event.type, body=b"{}",
                                  created_at=due.event.created_at) for _ in range(times)]  # fmt: skip
        type(due.event).objects.bulk_create(events)
        Delivery.objects.bulk_create(
            Delivery(
                id=clock.new_id_of_same_time(event.pk),
                merchant_id=due.merchant_id,
                event=event,
                event_type=event.type,
                subscription_id=due.subscription_id,
                next_attempt_at=due.next_attempt_at,
            )
            for event in events
        )

    def rows_read(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables"
                " WHERE relname = 'webhooks_delivery_pending'"
            )
            return int(cursor.fetchone()[0])
