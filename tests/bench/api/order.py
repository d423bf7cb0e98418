"""Measures the costs of an order, from its creation to the confirmed page: commits, WAL and CPU, by statement.

All buyers take a step before any of them takes the next step. After each step, the bench reads PostgreSQL's
statistics of statements and of the write-ahead log (WAL), so that they cover only this step. The bank and the
pumps also run in this process, on one thread, and their CPU time counts. The buyer's browser and the merchant's
backend run here too, but their CPU time does not count. The delivery of `checkout.authorized` is claimed and
recorded, but not sent, because the merchant's machine would do that work.

If other programs use the same cores, the speed of the cores can change by a third within a second. Each step is
therefore measured in three rounds of buyers, and the median CPU time is printed. Next to it is the CPU time of
the bare view (see reference.py), which is measured just before and just after the step. Commits and WAL bytes
are the mean of all rounds, because an index page is split only once in three hundred orders.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import psycopg
from psycopg.rows import namedtuple_row

from hosted_page.sms import sending
from tests import factories
from tests.bench.api import app, report
from tests.bench.api.app import METER, Backend, Call
from tests.bench.api.buyer import Buyer
from tests.bench.api.reference import BareHandler
from tests.bench.api.statements import SAVEPOINTS
from webhooks import delivery

BUYERS = 100  # in a round
# The area codes of the buyers' phone numbers: one for the warm-up, and one for each round.
WARM_UP, ROUNDS = 40, (41, 42, 43)
REFERENCES = 50  # the bare view is called this many times before a step, and again after it
DETAILS = 6  # for each step, this many of the most expensive statements are printed
COMMITS, WAL_KILOBYTES, POSTGRES_MS, APPLICATION_MS = 20, 26.0, 20.0, 42.0
OF = ("api", "page", "pump")
TICKS = os.sysconf("SC_CLK_TCK")
_STATEMENTS = """
SELECT query, calls, rows, wal_bytes::float AS wal, wal_records, shared_blks_hit + shared_blks_read AS blocks,
    total_exec_time AS ms
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = %s ORDER BY wal_bytes DESC, ms DESC
"""
_LOG = """
SELECT coalesce(sum(record_size), 0)::float, coalesce(sum(count) FILTER (WHERE kind = 'Transaction/COMMIT'), 0)::int
FROM (SELECT "resource_manager/record_type" AS kind, count, record_size FROM pg_get_wal_stats(%s, %s, true)) records
"""
# If a WAL record refers to several pages, it is counted for the first page. Full-page images are not counted.
_RELATIONS = """
WITH blocks AS MATERIALIZED (SELECT * FROM pg_get_wal_block_info(%s, %s, false)),
    images AS (SELECT start_lsn, coalesce(sum(block_fpi_length), 0) AS size FROM blocks GROUP BY start_lsn)
SELECT coalesce(c.relname, '?') AS relation, sum(record_length - size)::float AS wal, count(*)::float AS records
FROM blocks b JOIN images USING (start_lsn) LEFT JOIN pg_class c ON pg_relation_filenode(c.oid) = b.relfilenode
WHERE b.block_id = 0 GROUP BY 1 ORDER BY 2 DESC
"""


class Step(NamedTuple):
    """A step that all buyers take: whose CPU time it uses (api, page or pump), and what each buyer does."""

    name: str
    part: str
    run: Callable[[int], object]


class Cost(NamedTuple):
    """The costs of a step for one order."""

    step: Step
    commits: float
    wal: float  # bytes, without full-page images
    app_ms: float
    bare_ms: float
    postgres_ms: float
    statements: Sequence[Any]


class Orders:
    """The orders in one round: the buyers, and the merchant's backend."""

    def __init__(self, backend: Backend, area: int) -> None:
        self._backend, self._area = backend, area
        self._buyers: list[Buyer] = []
        self._uuids: list[str] = []

    def steps(self) -> Sequence[Step]:
        def of_buyers(verb: Callable[[Buyer], None]) -> Callable[[int], None]:
            return lambda number: verb(self._buyers[number])

        return (
            Step("create", "api", self._create),
            Step("page: phone", "page", of_buyers(Buyer.page)),
            Step("POST phone", "page", of_buyers(Buyer.phone)),
            Step("pump: SMS", "pump", lambda _: self._send_sms()),
            Step("page: code", "page", of_buyers(Buyer.page)),
            Step("POST code", "page", of_buyers(Buyer.enter_code)),
            Step("page: split", "page", of_buyers(Buyer.split_page)),
            Step("POST split", "page", of_buyers(Buyer.split)),
            Step("to the bank", "page", of_buyers(Buyer.card)),
            Step("bank: card page", "page", of_buyers(Buyer.bank_page)),
            Step("bank: POST card", "page", of_buyers(Buyer.bank_card)),
            Step("paid", "page", of_buyers(Buyer.paid)),
            Step("page: held", "page", of_buyers(Buyer.page)),
            Step("pump: delivery", "pump", lambda _: self._deliver()),
            Step("capture", "api", self._capture),
            Step("page: confirmed", "page", of_buyers(Buyer.page)),
        )

    def _create(self, number: int) -> None:
        made = orjson.loads(self._backend.create().send().body)["data"]["checkout_uuid"]
        self._uuids.append(made)
        self._buyers.append(Buyer(made, f"+447{self._area}{number % 50:02}{number:05}"))

    def _capture(self, number: int) -> None:
        self._backend.post(f"checkouts/{self._uuids[number]}/capture", {}).send()

    def _send_sms(self) -> None:
        with METER.running():
            message = sending.claim()
            if message is None:
                raise RuntimeError("No SMS message waits.")
            sending.send(message)

    def _deliver(self) -> None:
        with METER.running():
            (claimed,) = delivery.claim(slots=1, general_slots=1)
            delivery.record_results(
                [delivery.Result(claimed.delivery_id, claimed.lease_token, 200, None, 80)]
            )


def run(folder: Path, scale: float) -> None:
    """Print the costs per order and the most expensive statements of each step, and the totals with their budgets."""
    app.log_to(folder / "order.log")
    app.use("order")
    count = max(10, round(BUYERS * scale))
    backend = Backend.of_new_merchant("Acme")
    factories.subscribe(backend.merchant, url="http://127.0.0.1:9/hooks")
    with psycopg.connect(os.environ["DATABASE_URL"], dbname="order", autocommit=True) as own:
        for name in ("pg_stat_statements", "pg_walinspect"):
            own.execute(f"CREATE EXTENSION IF NOT EXISTS {name}")
        for step in Orders(backend, area=WARM_UP).steps():
            for number in range(count):
                step.run(number)
        own.execute("ALTER SYSTEM SET autovacuum = off")  # the writes of autovacuum do not belong to an order
        own.execute("SELECT pg_reload_conf()")
        own.execute("CHECKPOINT")
        began = _place(own)
        bare = _Bare(backend)
        rounds = [
            [_cost(own, step, count, bare) for step in Orders(backend, area).steps()] for area in ROUNDS
        ]
        relations = own.execute(_RELATIONS, [began, _place(own)]).fetchall()
        own.execute("ALTER SYSTEM RESET autovacuum")
        own.execute("SELECT pg_reload_conf()")
    orders = count * len(ROUNDS)
    rows = [(name, f"{wal / orders:,.0f}", f"{records / orders:.1f}") for name, wal, records in relations]
    _print([_of_rounds(of_step) for of_step in zip(*rounds, strict=True)])
    report.line("")
    report.table(("written to, by order", "WAL bytes", "records"), rows)


def _of_rounds(costs: Sequence[Cost]) -> Cost:
    """Return the cost in the round with the median CPU time, but with the mean commits and WAL of all rounds."""
    commits, wal = (
        sum(each) / len(costs) for each in zip(*((cost.commits, cost.wal) for cost in costs), strict=True)
    )
    return sorted(costs, key=lambda cost: cost.app_ms)[len(costs) // 2]._replace(commits=commits, wal=wal)


class _Bare:
    """The bare view. Its CPU time shows how fast the machine currently is."""

    def __init__(self, backend: Backend) -> None:
        self._handler, self._call = BareHandler(), Call("GET", f"/bare/{backend.merchant.pk}")
        self.seconds()

    def seconds(self) -> float:
        """Return the CPU seconds of one call."""
        before = METER.seconds
        for _ in range(REFERENCES):
            self._call.send(self._handler)
        return (METER.seconds - before) / REFERENCES


def _cost(postgres_connection: psycopg.Connection[Any], step: Step, count: int, bare: _Bare) -> Cost:
    pace = bare.seconds()
    postgres_connection.execute("SELECT pg_stat_statements_reset()")
    postgres, began = _postgres_seconds(postgres_connection), _place(postgres_connection)
    before = METER.seconds
    for number in range(count):
        step.run(number)
    used = METER.seconds - before
    postgres = _postgres_seconds(postgres_connection) - postgres
    wal, commits = _log_between(postgres_connection, began, _place(postgres_connection))
    with postgres_connection.cursor(row_factory=namedtuple_row) as cursor:
        rows = cursor.execute(_STATEMENTS, [postgres_connection.info.dbname]).fetchall()
    return Cost(
        step,
        commits / count,
        wal / count,
        1000 * used / count,
        1000 * (pace + bare.seconds()) / 2,
        1000 * postgres / count,
        _by_order(rows, count),
    )


def _log_between(own: psycopg.Connection[Any], began: str, ended: str) -> tuple[float, int]:
    """Return the number of bytes and of commits in the WAL between two positions."""
    if began == ended:
        return 0.0, 0
    size, commits = own.execute(_LOG, [began, ended]).fetchone() or (0.0, 0)
    return float(size), int(commits)


def _place(own: psycopg.Connection[Any]) -> str:
    """Flush the WAL and return the position of its end.

    The position must not be inside a record, because no reading can begin there.
    """
    # The last argument flushes the WAL. The message does not belong to a transaction.
    own.execute("SELECT pg_logical_emit_message(false, '', '', true)")
    (place,) = own.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone() or ("",)
    return str(place)


def _postgres_seconds(own: psycopg.Connection[Any]) -> float:
    """Return the CPU seconds that all PostgreSQL processes have used, including those that have ended."""
    (folder,) = own.execute("SHOW data_directory").fetchone() or ("",)
    first = Path(folder, "postmaster.pid").read_text().split()[0]
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    return sum(_seconds(pid, own=True, ended=pid == first) for pid in (first, *children))


def _seconds(pid: str, *, own: bool, ended: bool) -> float:
    fields = [int(text) for text in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]]
    return (own * sum(fields[:2]) + ended * sum(fields[2:])) / TICKS


def _by_order(rows: Sequence[Any], count: int) -> Sequence[Any]:
    """For each statement of a step, return its costs per order.

    Leave out savepoints, BEGIN, COMMIT, and the statements of the measurement, which run only a few times.
    """
    are_ours = (row for row in rows if row.calls >= count / 2)
    counted = [row for row in are_ours if not row.query.startswith((*SAVEPOINTS, "BEGIN", "COMMIT"))]
    return [
        row._replace(**{name: getattr(row, name) / count for name in ("calls", "wal", "ms", "blocks")})
        for row in counted
    ]


def _print(costs: Sequence[Cost]) -> None:
    rows = [
        (
            cost.step.name,
            f"{sum(row.calls for row in cost.statements):.1f}",
            f"{cost.commits:.1f}",
            f"{cost.wal:,.0f}",
            f"{cost.app_ms:.2f}",
            f"{cost.bare_ms:.2f}",
            f"{cost.postgres_ms:.2f}",
        )
        for cost in costs
    ]
    report.table(
        ("step, by order", "statements", "commits", "WAL bytes", "CPU ms", "bare view", "PostgreSQL ms"), rows
    )
    for cost in costs:
        report.line(f"\n{cost.step.name}")
        for row in cost.statements[:DETAILS]:
            words = re.sub(r"\s+", " ", row.query)[:110]
            read = f"{row.blocks:4.0f} blocks"
            report.line(f"  {row.calls:5.1f} ×  {row.wal:6,.0f} B  {row.ms:6.3f} ms  {read}  {words}")
    sums = [
        ("commits", sum(cost.commits for cost in costs), COMMITS),
        ("WAL, kB", sum(cost.wal for cost in costs) / 1000, WAL_KILOBYTES),
        ("PostgreSQL's CPU, ms", sum(cost.postgres_ms for cost in costs), POSTGRES_MS),
        ("the application's CPU, ms", sum(cost.app_ms for cost in costs), APPLICATION_MS),
    ]
    report.line("")
    for of in OF:
        report.line(f"CPU of {of}s, ms: {sum(cost.app_ms for cost in costs if cost.step.part == of):.2f}")
    report.table(
        ("an order", "is"),
        [(name, report.judged(f"order, {name}", is_, budget)) for name, is_, budget in sums],
    )
