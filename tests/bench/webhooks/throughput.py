"""Measures how fast a worker sends a backlog, and the CPU time that one delivery needs.

The reference is a bare loop that sends the same bytes as fast as it can. The worker sends to many endpoints,
so that the limit for each endpoint (40 a second after a burst) does not slow it down.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from payments.models import Merchant
from tests.bench.webhooks import backlog, figures
from tests.bench.webhooks.figures import Figure
from tests.bench.webhooks.processes import CpuTrace, Worker
from tests.bench.webhooks.stage import Stage

ENDPOINTS = 100
DELIVERIES = 20_000
ROUNDS = 5
# The number of parallel requests of the reference. A worker has the same number of slots for deliveries that
# are not urgent.
IN_FLIGHT = 120
KEPT = 2_000
SLOWEST = 50  # deliveries a second; the bench gives up if the worker is slower


class Cost(NamedTuple):
    """The seconds that one delivery takes."""

    cpu: float
    wall: float


def measure(stage: Stage) -> Iterator[Figure]:
    """Measure the deliveries per second, and the CPU time of a delivery as a multiple of the bare loop's.

    The bounds are 1,000 deliveries per second and 2.3 × the CPU time of the loop.
    """
    merchants = backlog.subscribe(stage.addresses(range(ENDPOINTS)))
    count = stage.scaled(DELIVERIES, minimum=20 * ENDPOINTS)
    ours: list[Cost] = []
    bare: list[Cost] = []
    with stage.worker() as worker, stage.clerk("reference", "reference") as reference:
        for turn in range(1, ROUNDS + 1):
            figures.progress(
                f"backlog: {count} deliveries to {ENDPOINTS} endpoints, round {turn} of {ROUNDS}"
            )
            ours.append(_drain(stage, worker, merchants, count))
            kept = stage.receiver.ask("kept")
            figures.progress(f"reference: the same requests from a bare loop, round {turn} of {ROUNDS}")
            stage.receiver.ask("reset")
            told = reference.ask("send", ports=stage.ports, kept=kept, count=count, in_flight=IN_FLIGHT)
            bare.append(Cost(told["cpu"], told["wall"]))
    yield from _figures(ours, bare)


def _drain(stage: Stage, worker: Worker, merchants: Sequence[Merchant], count: int) -> Cost:
    """Send a backlog over open connections. Return the cost of a delivery, measured in the middle 80 %."""
    stage.receiver.ask("reset")
    backlog.emit_once(merchants)
    stage.await_arrivals(worker, len(merchants), within=30)
    backlog.await_end(worker, merchants)
    stage.receiver.ask("reset", keep=KEPT)
    with CpuTrace(worker) as cpu:
        backlog.fill(merchants, count)
        stage.await_arrivals(worker, count, within=30 + count / SLOWEST)
        backlog.await_end(worker, merchants)
    moments = sorted(at for _, at, _ in stage.arrivals())
    first, last = int(count * 0.1), int(count * 0.9)
    sent, (start, end) = last - first, (moments[first], moments[last])
    return Cost(cpu.between(start, end) / sent, (end - start) / 1e9 / sent)


def _figures(ours: Sequence[Cost], bare: Sequence[Cost]) -> Iterator[Figure]:
    cpu, wall = _medians(ours)
    bare_cpu, bare_wall = _medians(bare)
    ratios = [mine.cpu / other.cpu for mine, other in zip(ours, bare, strict=True)]
    yield figures.at_least("backlog: deliveries per second of the worker's CPU", 1 / cpu, 1000, "/s")
    yield figures.at_least("backlog: deliveries per second of one worker process", 1 / wall, 1000, "/s")
    yield figures.without_bound("backlog: deliveries per second of the bare loop", 1 / bare_wall, "/s")
    yield figures.against(
        "backlog: CPU of a delivery, the bare loop at full speed",
        cpu * 1e6,
        bare_cpu * 1e6,
        "µs",
        bound=2.3,
        ratio=figures.median(ratios),
    )
    yield Figure("backlog: the ratios of each round", " ".join(f"{ratio:.2f}" for ratio in ratios))


def _medians(costs: Sequence[Cost]) -> Cost:
    return Cost(*(figures.median(column) for column in zip(*costs, strict=True)))
