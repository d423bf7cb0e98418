"""Functions create partitions in advance and drop old ones, and check the dates before they do so."""

import time
from datetime import date, timedelta
from uuid import UUID

import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction
from psycopg import sql
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from checkout.models import CALLS
from config import roles
from config.lib import clock
from config.lib.database import partitions
from tests.webhooks.story import claim_one, emit, record, subscribe
from webhooks import retention
from webhooks.models import ATTEMPTS, ENDED_DELIVERIES, EVENTS, PARTITIONED, Attempt, Event

pytestmark = [pytest.mark.django_db, pytest.mark.rule("secret.partitions")]
ALL = (*PARTITIONED, CALLS)


def execute(words: str, *values: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(words, list(values))  # type: ignore[arg-type]


class TestMaking:
    def test_is_done_in_advance(self) -> None:
        retention.create_partitions()  # the run can have started on the day before
        today = clock.now().date()
        for table in PARTITIONED:
            execute(f"DROP TABLE {table.named(today + timedelta(days=5))}")
        assert {partitions.days_ahead(table, today) for table in PARTITIONED} == {5}
        assert retention.create_partitions() == len(PARTITIONED)
        assert {partitions.days_ahead(table, today) for table in PARTITIONED} == {8}
        assert partitions.days_ahead(CALLS, today) >= 7

    def test_of_two_days_starts_on_every_other_day(self) -> None:
        first, second = date(1970, 1, 3), date(1970, 1, 4)
        assert CALLS.steps(first, first) == CALLS.steps(second, second) == [first]
        assert CALLS.steps(second, date(1970, 1, 7)) == [first, date(1970, 1, 5), date(1970, 1, 7)]

    def test_enforces_uniqueness_within_a_partition(self) -> None:
        due = emit(subscribe())
        record(claim_one(), 200)
        due.refresh_from_db()
        due.pk = clock.new_id_of_same_time(due.pk)
        with pytest.raises(IntegrityError, match="event_id_subscription_id"), transaction.atomic():
            due.save(force_insert=True)
        attempt = Attempt.objects.get()
        attempt.pk = clock.new_id_of_same_time(attempt.pk)
        with pytest.raises(IntegrityError, match="delivery_id_number"), transaction.atomic():
            attempt.save(force_insert=True)

    @pytest.mark.parametrize("model", ["delivery", "attempt"])
    def test_refuses_an_id_of_another_time_than_its_events(self, model: str) -> None:
        due = emit(subscribe())
        claim_one()
        row = due.attempts.get() if model == "attempt" else due
        with pytest.raises(IntegrityError, match="lies_with"):
            type(row).objects.filter(pk=row.pk).update(
                id=clock.new_id_of_same_time(UUID(int=uuid7().int + (1 << 80)))
            )

    @pytest.mark.parametrize(
        ("table", "starts_in", "days"),
        [
            ("webhooks_event", 16, 1),
            ("webhooks_event", -151, 1),
            ("webhooks_event", 9, 8),
            ("webhooks_event", 9, 0),
            ("webhooks_delivery", 9, 1),
            ("payments_posting", 9, 1),
            ("nothing", 9, 1),
        ],
    )
    def test_refuses_other_tables_and_days(self, table: str, starts_in: int, days: int) -> None:
        starts_on = clock.now().date() + timedelta(days=starts_in)
        with pytest.raises(IntegrityError, match="no partition"):
            execute("SELECT make_partition(%s, %s, %s)", table, starts_on, starts_on + timedelta(days=days))


class TestDropping:
    @pytest.mark.parametrize("table", [table.table for table in ALL])
    def test_refuses_partitions_younger_than_a_week(self, table: str) -> None:
        with pytest.raises(IntegrityError, match="younger than a week"):
            execute("SELECT drop_partition(%s, clock_timestamp() - interval '6 days')", table)

    def test_drops_no_table_that_is_not_a_partition(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT drop_partition('payments_posting', '2020-01-01'), drop_partition('nothing', '2020-01-01')"
            )
            assert cursor.fetchone() == (None, None)


class TestTheServicesRole:
    @pytest.fixture(autouse=True)
    def role(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        """Create the service's role as `migrate` does, and switch to it."""
        monkeypatch.setitem(settings.DATABASES["default"], "USER", "partitions_service")
        monkeypatch.setitem(settings.DATABASES["default"], "PASSWORD", "secret")
        roles.grant("default")
        partitions.make(EVENTS, clock.now().date() - timedelta(days=40), clock.now().date())
        execute("SET LOCAL ROLE partitions_service")

    def test_creates_and_drops_partitions_with_the_owners_functions(self) -> None:
        today = clock.now().date()
        assert partitions.make(ATTEMPTS, today - timedelta(days=3), today) == 2
        assert partitions.drop(EVENTS, clock.now() - timedelta(days=30)) == 10
        event = Event.objects.create(
            merchant=subscribe().merchant, type="checkout.voided", body=b"{}", created_at=clock.now()
        )
        assert Event.objects.get() == event

    @pytest.mark.parametrize(
        "words",
        [
            "DROP TABLE {leaf}",
            "ALTER TABLE webhooks_event DETACH PARTITION {leaf}",
            "TRUNCATE {leaf}",
            "CREATE TABLE mine PARTITION OF webhooks_event FOR VALUES FROM ({low}) TO ({high})",
            "ALTER FUNCTION drop_partition(name, timestamptz) SECURITY INVOKER",
        ],
    )
    def test_cannot_create_or_drop_partitions_itself(self, words: str) -> None:
        leaf = EVENTS.named(clock.now().date() - timedelta(days=40))
        low, high = UUID(int=0), UUID(int=1)
        named = {"leaf": sql.Identifier(leaf), "low": sql.Literal(str(low)), "high": sql.Literal(str(high))}
        with pytest.raises(ProgrammingError, match=r"owner|permission denied"), connection.cursor() as cursor:
            cursor.execute(sql.SQL(words).format(**named))


@pytest.mark.django_db(transaction=True)
def test_a_drop_waits_a_moment_for_its_lock_and_gives_up() -> None:
    """A drop must not wait long, because every later statement on the table would have to wait for the drop."""
    today = clock.now().date()
    partitions.make(ENDED_DELIVERIES, today - timedelta(days=33), today - timedelta(days=33))
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN; SELECT count(*) FROM webhooks_delivery")
            started = time.monotonic()
            assert partitions.drop(ENDED_DELIVERIES, clock.now() - timedelta(days=30)) == 0
            assert time.monotonic() - started < 2
            cursor.execute("ROLLBACK")
    finally:
        other.close()
    assert partitions.drop(ENDED_DELIVERIES, clock.now() - timedelta(days=30)) == 1


@pytest.mark.long
@pytest.mark.rule("secret.retention")
def test_a_day_of_two_hundred_thousand_deliveries_is_dropped_within_a_second() -> None:
    at, today = clock.now() - timedelta(days=33), clock.now().date()
    for table in PARTITIONED:
        partitions.make(table, at.date(), today)
    execute("SET LOCAL statement_timeout = 0")
    execute(FILL, subscribe().pk, clock.first_id(at).hex[:12])
    started = time.monotonic()
    assert retention.drop_old_partitions() >= len(PARTITIONED)
    assert time.monotonic() - started < 1
    assert not Event.objects.exists() and not Attempt.objects.exists()


FILL = """
WITH subscription AS (SELECT id, merchant_id FROM webhooks_subscription WHERE id = %s),
made AS (
    SELECT (prefix || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid AS id
    FROM (SELECT %s AS prefix) of, generate_series(1, 200000) AS n
),
events AS (
    INSERT INTO webhooks_event (id, merchant_id, type, body, created_at, request_id)
    SELECT made.id, merchant_id, 'checkout.voided', convert_to(repeat('x', 400), 'UTF8'), now(), ''
    FROM made, subscription
),
deliveries AS (
    INSERT INTO webhooks_delivery (id, merchant_id, event_id, subscription_id, event_type, status, is_urgent,
        attempt_count, resent_count, resent_by, ended_at)
    SELECT made.id, merchant_id, made.id, subscription.id, 'checkout.voided', 'delivered', false, 1, 0, '', now()
    FROM made, subscription
)
INSERT INTO webhooks_attempt (id, merchant_id, delivery_id, number, event_type, started_at, is_delivered,
    response_excerpt)
SELECT made.id, merchant_id, made.id, 1, 'checkout.voided', now(), true, '' FROM made, subscription
"""
