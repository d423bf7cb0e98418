"""A page far down a list does not cost more than the first page."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from uuid_utils.compat import uuid7

from config.lib import clock, cursor
from payments.models import Merchant
from webhooks.models import Attempt

pytestmark = pytest.mark.django_db


def test_a_page_starts_its_index_scan_at_the_cursor(acme: Merchant) -> None:
    rows = Attempt.objects.filter(merchant=acme)
    later = cursor.write_cursor("log", clock.now(), acme.pk)
    with CaptureQueriesContext(connection) as asked:
        cursor.read_page(rows, scope="log", limit=5, cursor=later, key="started_at")
    with connection.cursor() as database:
        # Allow only ordered index scans, because the statistics of earlier tests could lead to a different plan.
        for way in ("seqscan", "bitmapscan", "sort", "incremental_sort"):
            database.execute(f"SET LOCAL enable_{way} = off")
        database.execute(f"EXPLAIN {asked.captured_queries[0]['sql']}")
        plan = " ".join(row[0] for row in database.fetchall())
    condition = plan.partition("Index Cond:")[2].partition(" Filter:")[0]
    assert "merchant_id =" in condition and "ROW(started_at, id) <" in condition


DAYS = (0, 0.2, 0.9, 1.1, 1.2, 6.9, 7.1, 8, 20, 29)


@pytest.fixture
def delivered(acme: Merchant) -> QuerySet[Attempt]:
    """Create delivery attempts over a month; return a queryset whose filter excludes half of them."""
    now = clock.now()
    for days in DAYS:
        at = now - timedelta(days=days)
        for is_delivered in (True, False):
            delivery = uuid7()
            Attempt.objects.create(
                id=clock.new_id_of_same_time(delivery),
                merchant=acme,
                delivery_id=delivery,
                number=1,
                event_type="checkout.voided",
                started_at=at,
                is_delivered=is_delivered,
            )
    return Attempt.objects.filter(merchant=acme, is_delivered=True)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 10, 50])
def test_reading_in_steps_skips_no_row(delivered: QuerySet[Attempt], limit: int) -> None:
    found: list[Attempt] = []
    after, is_first = None, True
    while after or is_first:
        page, after = cursor.read_page(
            delivered, scope="log", limit=limit, cursor=after, key="started_at", in_steps=True
        )
        found, is_first = [*found, *page], False
        assert page
    assert [attempt.pk for attempt in found] == [
        attempt.pk for attempt in delivered.order_by("-started_at", "-pk")
    ]


@pytest.mark.parametrize(("limit", "steps"), [(2, 1), (5, 2), (9, 3)])
def test_reading_in_steps_stops_when_the_page_is_full(
    delivered: QuerySet[Attempt], limit: int, steps: int
) -> None:
    with CaptureQueriesContext(connection) as asked:
        cursor.read_page(delivered, scope="log", limit=limit, cursor=None, key="started_at", in_steps=True)
    listed = [query["sql"] for query in asked if "ORDER BY" in query["sql"]]
    assert len(listed) == steps and all(") >= (" in sql for sql in listed[:2])
