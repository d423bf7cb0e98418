"""PostgreSQL plans frequent statements only for the partitions that they need.

To plan them for all partitions would take milliseconds.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from uuid_utils.compat import uuid7

from config.lib import clock
from config.lib.database import partitions
from payments.cause import Cause
from tests import plans
from tests.conftest import Api
from tests.factories import order
from tests.webhooks.story import claim_one, emit, emit_event, record, register, renamed, subscribe
from webhooks import delivery, lookup, outbox, resending
from webhooks.models import PARTITIONED, Attempt, Delivery, Event, EventType, Subscription

pytestmark = [pytest.mark.django_db, pytest.mark.rule("secret.partitions")]


@pytest.fixture(autouse=True)
def month() -> None:
    """Create the partitions of the last 31 days. A service that has run for a long time has all of them."""
    today = clock.now().date()
    for table in PARTITIONED:
        partitions.make(table, today - timedelta(days=31), today)


@contextmanager
def reading(*moments: datetime) -> Iterator[None]:
    """Check that the block's statements are planned only for the days of these times.

    An hour before and after each time is allowed too, because clocks can differ by that much.
    """
    with CaptureQueriesContext(connection) as queries:
        yield
    hour = timedelta(hours=1)
    expected = {f"{moment + slack:%Y%m%d}" for moment in moments for slack in (-hour, hour * 0, hour)}
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('checkout.claiming', '', true)")
    read = {part: plans.days(part) for query in queries for part in statements(query["sql"])}
    assert any(read.values()), "it reads something"
    assert {part: days for part, days in read.items() if not days <= expected} == {}


def statements(sql: str) -> Iterator[str]:
    for part in sql.split(";"):
        if part.split(maxsplit=1)[:1] and part.split(maxsplit=1)[0] in (
            "SELECT",
            "WITH",
            "INSERT",
            "UPDATE",
            "DELETE",
        ):
            yield part


shop = pytest.fixture(subscribe)


def test_an_attempt_reads_only_the_partition_of_its_day(shop: Subscription) -> None:
    with reading(clock.now()):
        outbox.emit(shop.merchant, EventType.VOIDED, {}, at=clock.now())
        record(claim_one(), 500, "HTTP 500")
        Delivery.objects.filter(status="pending").update(next_attempt_at=clock.now())
        record(claim_one(), 200)


def test_a_successful_attempt_writes_no_index_entry(shop: Subscription) -> None:
    emit(shop)
    claimed, before = claim_one(), ended_on_their_pages()
    record(claimed, 200)
    assert ended_on_their_pages() == before + 1
    assert Attempt.objects.filter(lookup.result_condition(is_delivered=True)).count() == 1


@pytest.mark.parametrize(
    ("status", "error"), [(500, "HTTP 500"), (None, "timeout"), (None, delivery.WORKER_LOST)]
)
def test_of_an_attempt_that_fails_its_error_is_in_the_index(
    shop: Subscription, status: int | None, error: str
) -> None:
    emit(shop)
    record(claim_one(), status, error)
    found = Attempt.objects.filter(lookup.result_condition(is_delivered=False), merchant=shop.merchant)
    with connection.cursor() as cursor:
        for way in ("seqscan", "bitmapscan", "sort"):
            cursor.execute(f"SET LOCAL enable_{way} = off")
        cursor.execute("DROP INDEX attempt_listed")
    assert "_started_at_id_idx" in found.order_by("-started_at", "-pk").explain() and found.count() == 1


def ended_on_their_pages() -> int:
    """Return the number of attempts that this transaction has updated without writing to an index."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(n_tup_hot_upd) FROM pg_stat_xact_user_tables WHERE relname LIKE 'webhooks_attempt_2%'"
        )
        (count,) = cursor.fetchone()
    return int(count)


def test_an_attempt_for_an_old_event_reads_only_the_partition_of_its_day(shop: Subscription) -> None:
    at = clock.now() - timedelta(days=3)
    renamed(emit(shop).event_id, at)
    with reading(at):
        record(claim_one(), 200)


def test_ending_lost_and_pointless_deliveries_reads_only_todays_partition(shop: Subscription) -> None:
    emit(shop, EventType.AUTHORIZED, valid_for=-1)
    emit(shop)
    claim_one()
    Delivery.objects.filter(lease_token__isnull=False).update(lease_until=clock.now())
    with reading(clock.now()):
        assert delivery.close_lost_attempts() == 1 and delivery.end_obsolete_deliveries() == 1


def test_the_end_of_a_hold_reads_only_the_partition_of_its_day(shop: Subscription) -> None:
    now, checkout = clock.now(), uuid7()
    outbox.emit(shop.merchant, EventType.AUTHORIZED, {}, at=now, checkout_uuid=checkout, valid_until=now)
    with reading(now):
        outbox.supersede_all({checkout: now})
    assert Delivery.objects.get().status == "superseded"


def test_lookups_of_one_order_and_one_event_read_only_todays_partition(shop: Subscription) -> None:
    now, checkout = clock.now(), uuid7()
    event = outbox.emit(shop.merchant, EventType.VOIDED, {}, at=now, checkout_uuid=checkout)
    record(claim_one(), 200)
    with reading(now):
        assert lookup.attempts_about(checkout).count() == lookup.attempts_of([event.pk]).count() == 1


def test_a_resend_apart_from_its_checks_reads_only_todays_partition(shop: Subscription) -> None:
    due = emit(shop)
    record(claim_one(), 404, "HTTP 404")
    with reading(clock.now()):
        resending._send_again(shop.merchant, [due.pk], {}, Cause("user:dora"), False)
    due.refresh_from_db()
    assert due.status == "pending"


@pytest.mark.rule("events.feed")
def test_of_a_page_of_the_feed(api: Api) -> None:
    register(api.merchant)
    emit_event(api.merchant)
    Event.objects.update(written_at=clock.now() - timedelta(seconds=5))
    now = clock.now()
    with reading(now, now - timedelta(hours=25)):
        found = api.get("events").json()["data"]
    assert len(found["events"]) == 1
    with reading(now):
        api.get(f"events?cursor={found['next_cursor']}")


@pytest.mark.rule("events.feed")
@pytest.mark.parametrize("query", ["", "type=checkout.voided", "type=marketing.opted_in"])
def test_of_a_page_of_the_feed_are_in_the_order_of_an_index(api: Api, query: str) -> None:
    with CaptureQueriesContext(connection) as asked:
        api.get(f"events?{query}")
    (listed,) = (row["sql"] for row in asked if "written_at" in row["sql"])
    with connection.cursor() as database:
        # Allow only ordered index scans, because the statistics of other tests could otherwise change the
        # plan.
        for way in ("seqscan", "bitmapscan", "sort", "incremental_sort"):
            database.execute(f"SET LOCAL enable_{way} = off")
        # There are so few rows that PostgreSQL might otherwise choose the index without the type.
        if query:
            database.execute("DROP INDEX event_written")
        database.execute(f"EXPLAIN {listed}")
        plan = [row[0].strip() for row in database.fetchall()]
    conditions = [line for line in plan if line.startswith("Index Cond:")]
    assert conditions and not any("Seq Scan" in line for line in plan)
    for condition in conditions:
        assert "merchant_id =" in condition and "written_at >=" in condition and "written_at <" in condition
        assert ("type" in condition) == bool(query), "what there is little of has an index of its own"


@pytest.mark.rule("events.feed")
@pytest.mark.parametrize(
    "path", ["webhooks/deliveries?event_type=webhook.test", "events?type=checkout.voided"]
)
def test_prepared_plans_of_a_rare_type_use_its_index(api: Api, path: str) -> None:
    statements_sent: list[str] = []

    def noted(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        statements_sent.append(sql)
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(noted):
        api.get(path)
    (listed,) = (sql for sql in statements_sent if "ORDER BY" in sql and "event" in sql)
    numbers = count(1)
    kept = re.sub("%s", lambda _: f"${next(numbers)}", listed)
    with connection.cursor() as database:
        for way in ("seqscan", "bitmapscan", "sort", "incremental_sort"):
            database.execute(f"SET LOCAL enable_{way} = off")
        # There are so few rows that PostgreSQL might otherwise choose these indexes, which do not contain the
        # type.
        database.execute("DROP INDEX attempt_listed, event_written")
        database.execute(f"EXPLAIN (GENERIC_PLAN) {kept}")
        plan = [row[0].strip() for row in database.fetchall()]
    conditions = [line for line in plan if line.startswith("Index Cond:")]
    assert conditions and all("type" in line and "merchant_id = $" in line for line in conditions)


def test_of_a_call_and_its_key(api: Api) -> None:
    with CaptureQueriesContext(connection) as queries:
        for _ in range(2):
            assert api.post("checkouts", order(), idempotency_key="k").status_code == 201
    asked = [query["sql"] for query in queries if "checkout_apicall" in query["sql"]]
    assert len(asked) == 1 and plans.days(asked[0]) == set()
