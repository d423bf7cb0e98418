"""Fills two databases in one PostgreSQL, one full and one nearly empty, and measures the costs of requests in each.

The same code fills both databases. This process switches between them after each round, so that the load of the
machine affects both equally. The first calls on a new connection are not measured.
"""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from django.db import connection

from checkout.models import Checkout
from config.lib import clock
from payments.closed_days import sums
from payments.models import Merchant
from portal.dashboard import hourly_counts
from tests import factories
from tests.bench.api import app, report
from tests.bench.api.app import Backend, Call
from tests.bench.api.statements import SAVEPOINTS
from tests.bench.seed_load import loading

# The number of checkouts in the full and in the nearly empty database. The second has enough of them to fill
# a page of each list.
FULL, EMPTY, MERCHANTS = 1_000_000, 2000, 6
# In both databases, the last two months have this many checkouts, so that the charts have equally many bars.
DRAWN, DRAWN_OF = 6000, timedelta(days=60)
LATELY = 20_000  # checkouts in the last hour of the full database
# In each round, 12 calls of a request are not measured, and then 8 calls are. The reason: the driver prepares
# a statement when it is used for the fifth time, and PostgreSQL makes a new plan for each of the next five
# uses.
WARMING, REPEATED = 12, 8
# The largest expected ratio of the blocks that a statement touches in the full and in the nearly empty
# database. A statement with a larger ratio is printed.
GROWN = 1.15
Calls = Callable[[int], Sequence[Call]]
_BLOCKS = """
SELECT s.query, s.calls::float AS calls, (s.shared_blks_hit + s.shared_blks_read)::float AS blocks
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database()
"""


class Side(NamedTuple):
    """The full or the nearly empty database, with the backend of its first merchant, who has the most orders."""

    name: str
    backend: Backend


class Cost(NamedTuple):
    """The cost of one call in a round, in seconds.

    `wall` is the median wall time. `cpu` is the mean CPU time, including that of PostgreSQL.
    """

    wall: float
    cpu: float


Costs = dict[tuple[str, str], list[Cost]]
_filled: dict[str, Side] = {}


def both(folder: Path, scale: float) -> tuple[Side, Side]:
    """Return the full and the nearly empty database. Fill them unless an earlier section has filled them.

    The environment variable SIZE is the number of checkouts in the full database.
    """
    size = int(os.environ.get("SIZE", FULL))
    full = max(1000, round(size * scale))
    lately = max(EMPTY, min(LATELY, full // 10))
    return _filled_side(folder, "full", full, lately), _filled_side(folder, "empty", EMPTY, EMPTY)


def _filled_side(folder: Path, name: str, checkouts: int, lately: int) -> Side:
    if name not in _filled:
        app.use(name)
        mark = folder / f"{name}-{checkouts}"
        backend = Backend.of_oldest_merchant() if mark.exists() else _fill(name, checkouts)
        mark.touch()
        _refresh(name, lately)
        _filled[name] = Side(name, backend)
    return _filled[name]


def _fill(name: str, checkouts: int) -> Backend:
    report.progress(f"seed_load: {checkouts:,} checkouts")
    backends = [Backend.of_new_merchant(f"{name}{number}") for number in range(MERCHANTS)]
    for backend in backends:
        factories.subscribe(backend.merchant, url="http://127.0.0.1:9/hooks")
    started = time.monotonic()
    merchants = [backend.merchant.pk for backend in backends]
    loading.load(checkouts, merchants=merchants, say=report.progress)
    now = clock.now()
    loading.load(
        DRAWN, merchants=merchants, between=(now - DRAWN_OF, now - timedelta(hours=1)), say=report.progress
    )
    took = time.monotonic() - started
    report.line(f"{name}: {checkouts:,} checkouts in {took:.0f} s, {checkouts / took:,.0f}/s")
    return backends[0]


def _refresh(name: str, lately: int) -> None:
    """Prepare a database: create orders in the last hour, run the pumps and VACUUM. Print the database's size."""
    now = clock.now()
    merchants = list(Merchant.objects.order_by("created_at").values_list("pk", flat=True))
    recent = Checkout.objects.filter(merchant__in=merchants, updated_at__gte=now - timedelta(hours=1)).count()
    loading.load(
        max(1, lately - recent),
        merchants=merchants,
        between=(now - timedelta(minutes=50), now - timedelta(minutes=1)),
        say=report.progress,
    )
    _do("VACUUM ANALYZE")
    started = time.monotonic()
    sums.close_days(now)
    report.line(f"{name}: the ledger's days were summed in {time.monotonic() - started:.1f} s")
    report.progress(f"hours counted: {hourly_counts.catch_up(now)}")
    _do("VACUUM ANALYZE")
    _do("CHECKPOINT")
    _do("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    ((size,),) = _do("SELECT pg_size_pretty(pg_database_size(current_database()))")
    report.line(f"{name}: {size}")


def _do(statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def repeated(call: Call) -> Calls:
    """Return a function that repeats the call `times` times, as a list."""
    return lambda times: [call] * times


def costs(tables: dict[Side, dict[str, Calls]], rounds: int) -> Costs:
    """Return the costs of each request in each round, by request and database."""
    costs_by_request: Costs = {}
    sides = list(tables)
    for number in range(rounds):
        for side in sides if number % 2 else reversed(sides):
            app.use(side.name)
            for request, calls in tables[side].items():
                made = calls(WARMING + REPEATED)
                app.warm(made[:WARMING])
                costs_by_request.setdefault((request, side.name), []).append(_cost(made[WARMING:]))
        report.progress(f"round {number + 1} of {rounds}")
    return costs_by_request


def _cost(calls: Sequence[Call]) -> Cost:
    walls, cpu = [], cpu_seconds()
    for call in calls:
        started = time.perf_counter()
        call.send()
        walls.append(time.perf_counter() - started)
    return Cost(statistics.median(walls), (cpu_seconds() - cpu) / len(calls))


def cpu_seconds() -> float:
    """Return the CPU seconds that this process and its PostgreSQL connections have used so far."""
    pids = _do(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
    )
    own = sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for (pid,) in pids)
    return time.process_time() + own / 1e9


def ratios(measured: Costs, request: str) -> tuple[float, float]:
    """Compare the full with the empty database: return the median ratio of the wall times, and of the CPU times."""
    pairs = list(zip(measured[request, "full"], measured[request, "empty"], strict=True))
    wall = statistics.median(one.wall / other.wall for one, other in pairs)
    return wall, statistics.median(one.cpu / other.cpu for one, other in pairs)


def milliseconds(measured: Costs, request: str, side: str) -> float:
    """Return the median wall time of a request in milliseconds."""
    return 1000 * statistics.median(cost.wall for cost in measured[request, side])


def print_blocks(tables: dict[Side, dict[str, Calls]]) -> None:
    """Print how many blocks each request touches, and which statements touch more in the full database.

    A look-up in an index touches one more block for each additional level of the index. From one million rows
    to ten million, an index gains at most one level, because each page refers to about two hundred others.
    """
    read = {side.name: _blocks(side, calls) for side, calls in tables.items()}
    rows, grown = [], []
    for request, by_query in read["full"].items():
        few = read["empty"][request]
        rows.append((request, f"{sum(few.values()):.0f}", f"{sum(by_query.values()):.0f}"))
        grown += [
            (f"{request}: {' '.join(query.split())[:90]}", f"{few[query]:.0f}", f"{blocks:.0f}")
            for query, blocks in by_query.items()
            if query in few and blocks > GROWN * few[query] + 1
        ]
    report.table(("blocks of PostgreSQL that a request touches", "empty", "full"), rows)
    report.table(("statements that touch more", "empty", "full"), grown)


def _blocks(side: Side, table: dict[str, Calls]) -> dict[str, dict[str, float]]:
    """For each request and statement, return the number of blocks that one call touches."""
    app.use(side.name)
    blocks_by_request = {}
    for request, calls in table.items():
        made = calls(WARMING + REPEATED)
        app.warm(made[:WARMING])
        _do("SELECT pg_stat_statements_reset()")
        app.warm(made[WARMING:])
        rows = [row for row in _do(_BLOCKS) if not row[0].startswith((*SAVEPOINTS, "BEGIN", "COMMIT"))]
        blocks_by_request[request] = {
            query: blocks / REPEATED for query, _, blocks in rows if "pg_stat_" not in query
        }
    return blocks_by_request
