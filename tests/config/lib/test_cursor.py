"""A page costs the same however deep it lies."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from config.lib import clock, cursor
from payments.models import Merchant
from webhooks.models import Attempt

pytestmark = pytest.mark.django_db


def test_the_index_begins_where_the_page_does(acme: Merchant) -> None:
    rows = Attempt.objects.filter(merchant=acme)
    later = cursor.written("log", clock.now(), acme.pk)
    with CaptureQueriesContext(connection) as asked:
        cursor.page(rows, scope="log", limit=5, cursor=later, key="started_at")
    with connection.cursor() as database:
        # What other tests have left in the statistics decides nothing: no scan but one that is in order.
        for way in ("seqscan", "bitmapscan", "sort", "incremental_sort"):
            database.execute(f"SET LOCAL enable_{way} = off")
        database.execute(f"EXPLAIN {asked.captured_queries[0]['sql']}")
        plan = " ".join(row[0] for row in database.fetchall())
    condition = plan.partition("Index Cond:")[2].partition(" Filter:")[0]
    assert "merchant_id =" in condition and "started_at <=" in condition
