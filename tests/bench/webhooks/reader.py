"""Fills a separate database with a log of deliveries, and requests the pages of this log in this process.

`python -m tests.bench.webhooks.reader` answers lines of JSON.
"""

import os
import time
from typing import Any
from urllib.parse import quote

import django

from tests.bench.webhooks import processes

DAYS = 29
# Only the oldest fifth of the log contains failed attempts and test events.
LONG_AGO = 0.2
PAGE = 50
AT = "%(start)s::timestamptz + n * %(step)s::interval"
# Copies rows that the service has written. Each copy has a new id and time. The oldest copy comes first.
COPY = """
INSERT INTO {table} ({columns})
SELECT {expressions} FROM generate_series(1, %(count)s) n
JOIN {table} pattern ON pattern.id = CASE
    WHEN n > %(long_ago)s AND n %% 2 = 0 THEN %(authorized)s::uuid
    WHEN n > %(long_ago)s THEN %(voided)s::uuid
    WHEN n %% 2 = 0 THEN %(tested)s::uuid
    ELSE %(failed)s::uuid END
ORDER BY n
"""


class Reader:
    """Fills the log of one merchant, and requests its pages through the API."""

    def __init__(self) -> None:
        self._api: Any = None
        self._times: dict[str, Any] = {}
        self._count = 0

    def fill(self, merchant: str, count: int) -> None:
        """Write `count` attempts, dated within the last 29 days. Each attempt has its own event."""
        from payments.models import Merchant
        from tests.conftest import Api

        self._count, self._times = count, _times(count)
        _fill(merchant, count, self._times)
        self._api = Api(Merchant.objects.get(pk=merchant))

    def cursor(self, share: float) -> str:
        """Return the cursor of a page that begins at this position in the log (0 is the oldest entry)."""
        from config.lib import cursor
        from webhooks.models import Attempt

        merchant = self._api.merchant
        at = self._times["start"] + self._times["step"] * int(self._count * share)
        rows = Attempt.objects.filter(merchant=merchant, started_at__lte=at)
        scope = f"deliveries:{merchant.pk}"
        _, found = cursor.read_page(rows, scope=scope, limit=1, cursor=None, key="started_at")
        return quote(str(found))

    def get(self, path: str) -> dict[str, float]:
        """Request a page, which must be full. Return the wall time and the CPU time in milliseconds."""
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        answer = self._api.get(path)
        cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
        if answer.status_code != 200 or len(answer.json()["data"]["deliveries"]) != PAGE:
            raise RuntimeError(f"{path}: {answer.status_code} {answer.content[:500]!r}")
        return {"wall": wall / 1e6, "cpu": cpu / 1e6}


def _times(count: int) -> dict[str, Any]:
    from datetime import UTC, datetime, timedelta

    span = timedelta(days=DAYS)
    return {"start": datetime.now(UTC) - span - timedelta(hours=1), "step": span / count}


def _fill(merchant: str, count: int, times: dict[str, Any]) -> None:
    from datetime import timedelta

    from django.db import connection

    from config.lib.database import partitions
    from webhooks.models import PARTITIONED, Attempt, Delivery, Event

    for table in PARTITIONED:
        partitions.make(table, times["start"].date(), (times["start"] + timedelta(days=DAYS)).date())
    parameters = {"count": count, "long_ago": int(count * LONG_AGO), **times}
    patterns = {name: _pattern(merchant, *kind) for name, kind in _kinds().items()}
    with connection.cursor() as cursor:
        # The checks of foreign keys are not needed, because the copies refer to each other correctly.
        cursor.execute("SET session_replication_role = replica")
        for place, model in enumerate((Event, Delivery, Attempt)):
            ids = {name: rows[place] for name, rows in patterns.items()}
            cursor.execute(_copy_of(model), parameters | ids)
        cursor.execute("SET session_replication_role = DEFAULT")
        cursor.execute("VACUUM (ANALYZE) webhooks_event, webhooks_delivery, webhooks_attempt")


def _kinds() -> dict[str, tuple[Any, int]]:
    from webhooks.models import EventType

    return {
        "authorized": (EventType.AUTHORIZED, 200),
        "voided": (EventType.VOIDED, 200),
        "tested": (EventType.TEST, 404),
        "failed": (EventType.VOIDED, 404),
    }


def _pattern(merchant: str, event_type: Any, status: int) -> tuple[Any, Any, Any]:
    """Return the ids of an event, its delivery and its attempt. The service has written these rows."""
    from webhooks.models import Attempt

    rows = Attempt.objects.filter(merchant_id=merchant, http_status=status, delivery__event__type=event_type)
    attempt = rows.select_related("delivery").get()
    return attempt.delivery.event_id, attempt.delivery_id, attempt.pk


def _copy_of(model: Any) -> str:
    names = {"webhooks_event": "event", "webhooks_delivery": "delivery", "webhooks_attempt": "attempt"}
    table = model._meta.db_table
    own = {
        "id": _id(names[table]),
        "event_id": _id("event"),
        "delivery_id": _id("delivery"),
        "started_at": AT,
    }
    if table != "webhooks_delivery":
        own |= {"created_at": AT, "ended_at": f"{AT} + interval '80 ms'"}
    columns = [column.column for column in model._meta.concrete_fields if not column.generated]
    expressions = [own.get(column, f"pattern.{column}") for column in columns]
    return COPY.format(table=table, columns=", ".join(columns), expressions=", ".join(expressions))


def _id(kind: str) -> str:
    """Return the SQL for the UUIDv7 of the n-th row of this kind. The SQL gives the same id in every table."""
    milliseconds = f"(extract(epoch FROM {AT}) * 1000)::bigint"
    rest = f"substr(md5(n::text || '{kind}'), 1, 15)"
    return f"(lpad(to_hex({milliseconds}), 12, '0') || '70008' || {rest})::uuid"


if __name__ == "__main__":
    # The two readers that are compared run on the same core, because two cores can differ in speed.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.test.utils import setup_test_environment

    setup_test_environment()
    reader = Reader()
    processes.serve({"fill": reader.fill, "cursor": reader.cursor, "get": reader.get})
