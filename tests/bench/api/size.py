"""Whether a request minds the size of the tables: 1,000,000 checkouts by seed_load against all but none.

Two databases in one PostgreSQL, filled by the same code: 1,000,000 checkouts here, 200 there. This one process
works on them in turn, round by round, so that both meet the same machine; a round's first calls, on fresh
connections, are not measured. What is read is captured, has three lines, and is another checkout each time.
"""

import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from django.db import connection
from django.db.models import Count

from checkout.models import Checkout
from payments.models import Merchant
from tests.bench.api import app, report
from tests.bench.api.app import Backend, Call
from tests.bench.seed_load import loading

FULL, EMPTY = 1_000_000, 200
ROUNDS, REPEATED, WARMING = 21, 40, 15
BUDGET = 1.1


class Side(NamedTuple):
    """A database, its merchant's backend and checkouts of its to read."""

    name: str
    backend: Backend
    checkouts: Sequence[str]

    def calls(self, request: str, times: int) -> Sequence[Call]:
        if request == "create, 5 items":
            return [self.backend.create() for _ in range(times)]
        return [self.backend.get(f"checkouts/{random.choice(self.checkouts)}") for _ in range(times)]


class Cost(NamedTuple):
    """Of one call in a round: the median on the wall, and the mean of CPU, in seconds."""

    wall: float
    cpu: float


REQUESTS = ("read", "create, 5 items")


def run(folder: Path, scale: float) -> None:
    """Print the ratios of full to empty."""
    app.log_to(folder / "size.log")
    full, empty = seeded("full", max(1000, round(FULL * scale))), seeded("empty", EMPTY)
    costs: dict[tuple[str, str], list[Cost]] = {}
    rounds = max(3, round(ROUNDS * scale))
    for number in range(rounds):
        for side in (full, empty) if number % 2 else (empty, full):
            app.use(side.name)
            for request in REQUESTS:
                app.warm(side.calls(request, WARMING))
                costs.setdefault((request, side.name), []).append(_cost(side.calls(request, REPEATED)))
        if number % 5 == 0:
            report.progress(f"round {number + 1} of {rounds}")
    rows = []
    for request in REQUESTS:
        pairs = list(zip(costs[request, "full"], costs[request, "empty"], strict=True))
        wall = statistics.median(one.wall / other.wall for one, other in pairs)
        cpu = statistics.median(one.cpu / other.cpu for one, other in pairs)
        shown = [
            f"{1000 * statistics.median(one.wall for one in pair):.2f}" for pair in zip(*pairs, strict=True)
        ]
        judged = report.judged(f"{request}, full to empty, wall", wall, BUDGET)
        rows.append((request, *shown, judged, report.judged(f"{request}, full to empty, CPU", cpu, BUDGET)))
    report.table(("request", "full ms", "empty ms", "wall, ratio", "CPU, ratio"), rows)


def seeded(name: str, checkouts: int) -> Side:
    app.use(name)
    backend = Backend.of_new_merchant(name)
    report.progress(f"seed_load: {checkouts:,} checkouts")
    started = time.monotonic()
    loading.load(checkouts, merchant_uuid=backend.merchant.pk, say=report.progress)
    took = time.monotonic() - started
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("VACUUM ANALYZE")  # what autovacuum has done by the time that a table is so large
        cursor.execute("CHECKPOINT")
        cursor.execute("SELECT pg_size_pretty(pg_database_size(current_database()))")
        size = cursor.fetchone()[0]
    report.line(f"{name}: {checkouts:,} checkouts in {took:.0f} s, {checkouts / took:,.0f}/s, {size}")
    return Side(name, backend, _readable(backend.merchant))


def _readable(merchant: Merchant) -> Sequence[str]:
    """Return checkouts from all over the table that cost the same to show."""
    found = Checkout.objects.filter(merchant=merchant, status="captured").order_by("merchant_order_id")
    three = found.annotate(lines=Count("items")).filter(lines=3)
    return [str(pk) for pk in three.values_list("pk", flat=True)[:5000]]


def _cost(calls: Sequence[Call]) -> Cost:
    walls, cpu = [], time.process_time()
    for call in calls:
        started = time.perf_counter()
        call.made()
        walls.append(time.perf_counter() - started)
    return Cost(statistics.median(walls), (time.process_time() - cpu) / len(calls))
