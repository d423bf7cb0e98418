"""Compares the throughput of four workers with that of one worker.

The endpoints are slow, so the workers mostly wait. If four workers are hardly faster than one, they block
each other when they claim deliveries.
"""

import contextlib
from collections.abc import Iterator, Sequence

from payments.models import Merchant
from tests.bench.webhooks import backlog, figures
from tests.bench.webhooks.figures import Figure
from tests.bench.webhooks.stage import Stage

ENDPOINTS = 100
ANSWER_SECONDS = 1.0
SECONDS = 15  # the slots need this long to send the backlog
PER_WORKER = 120  # slots for deliveries that are not urgent
WORKERS = 4


def measure(stage: Stage) -> Iterator[Figure]:
    """Measure the throughput of four workers as a multiple of one worker's. The multiple must be at least 3."""
    merchants = backlog.subscribe(stage.addresses(range(ENDPOINTS)))
    rates = {count: _rate(stage, merchants, count) for count in (1, WORKERS)}
    for count, rate in rates.items():
        yield figures.without_bound(f"workers: deliveries per second of {count}", rate, "/s")
    yield figures.at_least(f"workers: those of {WORKERS} by those of one", rates[WORKERS] / rates[1], 3, "×")


def _rate(stage: Stage, merchants: Sequence[Merchant], workers: int) -> float:
    """Return the deliveries per second in the middle 60 % of a backlog. Endpoints answer after one second."""
    count = stage.scaled(workers * PER_WORKER * SECONDS, minimum=workers * PER_WORKER * 3)
    figures.progress(f"workers: {count} deliveries, {workers} at work")
    stage.receiver.ask("calm")
    with contextlib.ExitStack() as stack:
        first, *_ = [stack.enter_context(stage.worker(f"worker-{number}")) for number in range(workers)]
        backlog.emit_once(merchants)
        backlog.await_end(first, merchants)
        stage.receiver.ask("reset")
        for endpoint in range(ENDPOINTS):
            stage.receiver.ask("behave", endpoint=endpoint, status=200, seconds=ANSWER_SECONDS)
        backlog.fill(merchants, count)
        stage.await_arrivals(first, count, within=30 + 4 * SECONDS * workers)
        moments = sorted(at for _, at, _ in stage.arrivals())
        stage.receiver.ask("calm")
        backlog.await_end(first, merchants)
    early, late = moments[int(count * 0.2)], moments[int(count * 0.8)]
    return count * 0.6 / ((late - early) / 1e9)
