"""Which rows are deleted at the end of their retention, and which rows stay."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from config.lib import batches, clock
from config.lib.database import partitions
from config.lib.database.partitions import Partitioned
from tests.webhooks.story import aged, claim_one, emit, record, renamed, subscribe
from webhooks import headers, outbox, retention, tasks
from webhooks.models import (
    ATTEMPTS,
    ENDED_DELIVERIES,
    EVENTS,
    PARTITIONED,
    Attempt,
    Delivery,
    Event,
    EventType,
    Subscription,
    decrypt_if_personal,
)

pytestmark = pytest.mark.django_db

EMAIL = "lea@example.com"


acme = pytest.fixture(subscribe)


def opt_in(subscription: Subscription) -> Delivery:
    payload = {"customer": {"email": EMAIL}}
    event = outbox.emit(subscription.merchant, EventType.OPTED_IN, payload, at=clock.now())
    return event.deliveries.get()


class TestPersonalBodies:
    @pytest.mark.rule("secret.retention")
    def test_are_encrypted_at_rest_and_sent_plain(self, acme: Subscription) -> None:
        due = opt_in(acme)
        assert EMAIL.encode() not in bytes(due.event.body)
        claimed = claim_one()
        assert EMAIL.encode() not in claimed.body
        body = decrypt_if_personal(claimed.event_type, claimed.body)
        assert EMAIL.encode() in body and body == due.event.plain_body
        assert headers.signed_headers(claimed, body)["X-Service-Event-Type"] == "marketing.opted_in"

    def test_other_bodies_are_stored_as_they_are_sent(self, acme: Subscription) -> None:
        due = emit(acme)
        assert bytes(due.event.body) == due.event.plain_body == claim_one().body

    def test_the_receivers_response_is_not_stored(self, acme: Subscription) -> None:
        personal, other = opt_in(acme), emit(acme)
        for due in (personal, other):
            Delivery.objects.exclude(pk=due.pk).update(next_attempt_at=clock.now() + timedelta(hours=1))
            Delivery.objects.filter(pk=due.pk).update(next_attempt_at=clock.now())
            record(claim_one(), 500, "HTTP 500")
        assert personal.attempts.get().response_excerpt == ""
        assert other.attempts.get().response_excerpt == "text"

    @pytest.mark.rule("secret.retention")
    @pytest.mark.parametrize("status", ["delivered", "parked"])
    def test_are_deleted_a_week_after_their_end(self, acme: Subscription, status: str) -> None:
        due = aged(opt_in(acme), 7.01, status=status)
        tasks.delete_personal()
        due.event.refresh_from_db()
        assert (bytes(due.event.body), due.event.plain_body) == (b"", b"")
        assert due.event.body_deleted_at is not None
        assert retention.delete_personal_bodies() == 0

    def test_without_a_delivery_are_deleted_too(self, acme: Subscription) -> None:
        due = aged(opt_in(acme), 8)
        due.delete()
        assert retention.delete_personal_bodies() == 1

    def test_are_kept_until_a_week_after_their_end(self, acme: Subscription) -> None:
        aged(opt_in(acme), 6.9)
        aged(opt_in(acme), 8, status="pending")
        ended_late = aged(opt_in(acme), 8)
        Delivery.objects.filter(pk=ended_late.pk).update(ended_at=clock.now())
        aged(emit(acme), 8)
        assert retention.delete_personal_bodies() == 0


def partitions_of(days: float) -> None:
    """Create all partitions since `days` ago, including today's."""
    today = clock.now().date()
    for table in PARTITIONED:
        partitions.make(table, today - timedelta(days=days), today)


class TestOldEvents:
    def old(self, acme: Subscription, days: float, *, status: str = "delivered") -> Delivery:
        due = emit(acme)
        record(claim_one(), 500, "HTTP 500")
        aged(due, days, status=status)
        event_id = renamed(due.event_id, clock.now() - timedelta(days=days))
        return Delivery.objects.get(event=event_id)

    @pytest.mark.rule("secret.retention")
    @pytest.mark.parametrize("has_partitions", [True, False])
    def test_are_deleted_with_deliveries_and_attempts_after_thirty_days(
        self, acme: Subscription, has_partitions: bool
    ) -> None:
        assert timedelta(days=30) == settings.WEBHOOK_RETENTION
        if has_partitions:
            partitions_of(33)
        self.old(acme, 31.1)
        young = self.old(acme, 29)
        tasks.delete_old_events()
        assert list(Delivery.objects.all()) == [young]
        assert Event.objects.count() == Attempt.objects.count() == 1

    @pytest.mark.rule("secret.retention")
    def test_are_dropped_in_whole_partitions(self, acme: Subscription) -> None:
        partitions_of(35)
        for _ in range(3):
            self.old(acme, 33)
        # In each table, the partitions for the days from 31 to 35 days ago are dropped.
        today, gone = clock.now().date(), 5 * len(PARTITIONED)
        with CaptureQueriesContext(connection) as asked:
            assert retention.drop_old_partitions() == gone
        assert not any(query["sql"].startswith("DELETE FROM webhooks_event ") for query in asked)
        for table in PARTITIONED:
            assert partitions.make(table, today - timedelta(days=35), today) == 5
        assert not Event.objects.exists() and not Delivery.objects.exists() and not Attempt.objects.exists()

    @pytest.mark.rule("secret.retention")
    def test_that_have_not_ended_keep_only_the_partition_of_their_day(self, acme: Subscription) -> None:
        partitions_of(60)
        gone, kept = self.old(acme, 51), self.old(acme, 50)
        self.old(acme, 50, status="pending")
        retention.drop_old_partitions()
        assert set(Delivery.objects.values_list("status", flat=True)) == {"pending", "delivered"}
        assert not Delivery.objects.filter(pk=gone.pk).exists()
        assert Event.objects.count() == Attempt.objects.count() == 2
        Delivery.objects.filter(status="pending").update(
            status="parked", next_attempt_at=None, ended_at=clock.now()
        )
        retention.drop_old_partitions()
        assert not Delivery.objects.filter(pk=kept.pk).exists() and not Event.objects.exists()

    @pytest.mark.rule("secret.retention")
    def test_without_a_partition_are_still_sent_and_later_deleted(self, acme: Subscription) -> None:
        """Check that events are stored and sent even if today's partition is missing."""
        retention.create_partitions()  # the run can have started on the day before
        with connection.cursor() as cursor:
            for table in PARTITIONED:
                cursor.execute(f"DROP TABLE {table.named(clock.now().date())}")
        due = emit(acme)
        record(claim_one(), 200)
        assert retention.create_partitions() == 0, "what was caught stays where it is"
        due.refresh_from_db()
        assert (due.status, due.attempts.count()) == ("delivered", 1)
        renamed(due.event_id, clock.now() - timedelta(days=31))
        aged(due, 31)
        retention.drop_old_partitions()
        assert not Event.objects.exists() and not Delivery.objects.exists() and not Attempt.objects.exists()
        assert retention.create_partitions() == len(PARTITIONED)

    @pytest.mark.rule("secret.retention")
    def test_in_the_default_partition_stay_while_an_older_one_is_open(self, acme: Subscription) -> None:
        gone, kept = self.old(acme, 51), self.old(acme, 40)
        waits = self.old(acme, 50, status="pending")
        retention.drop_old_partitions()
        assert set(Delivery.objects.all()) == {kept, waits} and gone.pk
        assert Event.objects.count() == Attempt.objects.count() == 2

    def test_in_the_default_partition_are_deleted_in_small_batches(
        self, acme: Subscription, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(partitions, "ROWS", 2)
        for _ in range(5):
            self.old(acme, 31)
        monkeypatch.setattr(batches, "BATCHES", 2)
        retention.drop_old_partitions()
        assert Event.objects.count() == 1, "the next run goes on"
        retention.drop_old_partitions()
        assert not Event.objects.exists()

    @pytest.mark.rule("secret.retention")
    def test_in_the_default_partition_are_deleted_after_their_attempts(
        self, acme: Subscription, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        due = self.old(acme, 31)
        for number in (2, 3):
            Attempt.objects.create(
                id=clock.new_id_of_same_time(due.pk),
                merchant_id=due.merchant_id,
                delivery=due,
                number=number,
                started_at=clock.now(),
            )
        monkeypatch.setattr(partitions, "ROWS", 1)
        monkeypatch.setattr(batches, "BATCHES", 2)
        retention.drop_old_partitions()
        assert Attempt.objects.count() == Delivery.objects.count() == Event.objects.count() == 1
        retention.drop_old_partitions()
        assert not Attempt.objects.exists() and not Event.objects.exists()

    @pytest.mark.rule("secret.retention")
    @pytest.mark.parametrize("referring", [[ATTEMPTS, ENDED_DELIVERIES], [ATTEMPTS]])
    def test_stay_while_a_row_of_their_day_can_refer_to_them(self, referring: list[Partitioned]) -> None:
        partitions_of(31)
        before = clock.now() - timedelta(days=30)
        if ENDED_DELIVERIES not in referring:
            assert partitions.drop(ENDED_DELIVERIES, before) == 1
        assert partitions.drop(EVENTS, before, referring=(ATTEMPTS, ENDED_DELIVERIES)) == 0
        assert partitions.drop(ATTEMPTS, before) == 1
        assert partitions.drop(ENDED_DELIVERIES, before, referring=[ATTEMPTS]) == int(
            ENDED_DELIVERIES in referring
        )
        assert partitions.drop(EVENTS, before, referring=(ATTEMPTS, ENDED_DELIVERIES)) == 1


class TestEndedSubscriptions:
    def test_are_deleted_once_no_delivery_is_left(self, acme: Subscription) -> None:
        for days in (31, 33):
            rival = subscribe(f"Rival {days}")
            ended_at = clock.now() - timedelta(days=days)
            Subscription.objects.filter(pk=rival.pk).update(ended_at=ended_at, has_deliveries=True)
        assert retention.delete_ended_subscriptions() == 1
        assert not Subscription.objects.filter(merchant__name="Rival 33").exists()

    def test_are_deleted_after_an_hour_if_they_never_had_a_delivery(self, acme: Subscription) -> None:
        for minutes in (59, 61):
            rival = subscribe(f"Rival {minutes}")
            ended_at = clock.now() - timedelta(minutes=minutes)
            Subscription.objects.filter(pk=rival.pk).update(ended_at=ended_at)
        assert retention.delete_ended_subscriptions() == 1
        assert not Subscription.objects.filter(merchant__name="Rival 61").exists()
        emit(acme)
        assert Subscription.objects.get(pk=acme.pk).has_deliveries

    def test_stay_while_a_delivery_waits(self, acme: Subscription) -> None:
        emit(acme)
        Subscription.objects.update(ended_at=clock.now() - timedelta(days=99))
        assert retention.delete_ended_subscriptions() == 0


@pytest.mark.rule("secret.retention")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("table", PARTITIONED, ids=lambda table: table.table)
def test_a_locked_partition_keeps_the_partitions_that_it_refers_to(table: Partitioned) -> None:
    """Check that a partition is not dropped while a locked partition of the same day refers to it.

    Another session locks the partition of `table`. Of this day, the service can then drop only the partitions
    that refer to the locked one.
    """
    # `going` is the number of tables that refer to `table`.
    today, going = clock.now().date(), PARTITIONED.index(table)
    for one in PARTITIONED:
        partitions.make(one, today - timedelta(days=32), today - timedelta(days=31))
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute(f"BEGIN; SELECT FROM {table.named(today - timedelta(days=31))}")
            assert retention.drop_old_partitions() == len(PARTITIONED) + going, (
                "the day before goes as a whole"
            )
            cursor.execute("ROLLBACK")
    finally:
        other.close()
    assert retention.drop_old_partitions() == len(PARTITIONED) - going
