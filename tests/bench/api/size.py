"""Measures how the size of the tables affects the speed of all API requests and payer pages.

Each request runs on a full database and on one that is nearly empty. This benchmark also measures how long the
ledger proofs of the full database take. SIZE=3000000 sets the number of checkouts in the full database, and
FOLDER=/var/tmp/bench keeps the databases for the next run.
"""

import random
import statistics
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from checkout.models import Checkout
from checkout.proof import ledger_proof, proof_runs
from config.lib import clock
from tests.bench.api import app, pages, report, requests, sides
from tests.bench.api.app import Backend
from tests.bench.api.sides import Calls, Side

ROUNDS = 9
BUDGET = 1.1
HOUR_SECONDS = 2.0  # the proof of one hour's changes must take at most this long
COLD = 300  # this many orders are read once each, to measure reads that are not cached
RANGES = 20  # the bench proves this many ranges of checkouts, to measure the speed of the full proof


def run(folder: Path, scale: float) -> None:
    """Print the ratios of the full to the empty database, the blocks touched, and the duration of the proofs."""
    app.log_to(folder / "size.log")
    full, empty = sides.both(folder, scale)
    tables = {side: _table(side) for side in (full, empty)}
    found = sides.costs(tables, max(3, round(ROUNDS * scale)))
    rows = []
    for request in tables[full]:
        wall, cpu = sides.ratios(found, request)
        shown = [f"{sides.milliseconds(found, request, side.name):.2f}" for side in (full, empty)]
        judged = report.judged(f"{request}, full to empty, wall", wall, BUDGET)
        rows.append((request, *shown, judged, report.judged(f"{request}, full to empty, CPU", cpu, BUDGET)))
    report.table(("request", "full ms", "empty ms", "wall, ratio", "CPU, ratio"), rows)
    report.line("")
    sides.print_blocks(tables)
    report.line("")
    app.use(full.name)
    _read_first(full.backend)
    _prove()


def _table(side: Side) -> dict[str, Calls]:
    app.use(side.name)
    backend, read = side.backend, _readable(side.backend)
    verbs = {request.name: request.calls for request in requests.Merchant(backend).table()}
    return verbs | {
        # All calls in a batch read the same order, so that the first call warms the caches.
        "read": lambda times: [backend.get(f"checkouts/{random.choice(read)}")] * times,
        "list, 20 rows": lambda times: [backend.get("checkouts?limit=20")] * times,
        "cancel": requests.Merchant(backend).cancel,
        **{name: sides.repeated(call) for name, call in pages.calls(backend).items()},
    }


def _readable(backend: Backend) -> Sequence[str]:
    """Return captured checkouts from all parts of the table."""
    found = Checkout.objects.filter(merchant=backend.merchant, status="captured").order_by(
        "merchant_order_id"
    )
    return [str(pk) for pk in found.values_list("pk", flat=True)[:5000]]


def _read_first(backend: Backend) -> None:
    """Print the time that it takes to read orders that were not read recently.

    PostgreSQL has only some of these orders in memory.
    """
    took = []
    for read in random.sample(_readable(backend), COLD):
        started = time.perf_counter()
        backend.get(f"checkouts/{read}").send()
        took.append(time.perf_counter() - started)
    report.line(
        f"{COLD} orders from all over the table, each read once: p50 {1000 * statistics.median(took):.2f} ms"
    )


def _prove() -> None:
    """Print the duration of the proof of the last hour, and the speed of the full proof in checkouts per second."""
    since = clock.now() - timedelta(hours=1)
    ledger_proof.find_breaches(since)  # warms the caches for the run that is measured
    started, cpu = time.monotonic(), sides.cpu_seconds()
    found = ledger_proof.find_breaches(since)
    took, cpu = time.monotonic() - started, sides.cpu_seconds() - cpu
    checkouts, _ = ledger_proof.count_changed(since)
    judged = f"{report.judged('proof of the last hour, s', took, HOUR_SECONDS)} {cpu:.2f} of CPU"
    report.line(f"proof of the {checkouts:,} checkouts that changed within an hour, s: {judged}")
    started, done = time.monotonic(), 0
    for number, step in enumerate(proof_runs.run_steps(proof_runs.begin_run(restart=True))):
        found += step.breaches
        done = step.run.checkout_count
        if number == RANGES:
            break
    report.line(f"proof of everything: {done / (time.monotonic() - started):,.0f} checkouts/s")
    if found:
        report.miss(f"{len(found)} breaches of the ledger's invariants")
