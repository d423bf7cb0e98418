"""Measures how a hanging endpoint delays another endpoint, and the load on an endpoint after it recovers."""

import time
from collections.abc import Iterator

from tests.bench.webhooks import backlog, figures, pacing
from tests.bench.webhooks.figures import Figure
from tests.bench.webhooks.stage import Stage

HANGING, HEALTHY, RECOVERED = 0, 1, 2
HANG_SECONDS = 15.0
WAITING = 500
RATE = 20
SECONDS = 10
RUNS = 5
DUE = 5_000
DOWN_SECONDS = 3.0
BUSY_SECONDS = 1.0  # the slower receiver's response time after its recovery
# A recovered endpoint must get at least this many requests in the first ten seconds.
MINIMUM = 50
SECOND = 1_000_000_000


def measure(stage: Stage) -> Iterator[Figure]:
    """Measure by how much a hanging endpoint raises another endpoint's p99, and the load after a recovery.

    The bound for the p99 is 1.5 ×. The bounds after a recovery are 10 requests in flight and 50 requests a
    second.
    """
    alone, beside = [], []
    for run in range(1, RUNS + 1):
        alone.append(_flow(stage, is_one_hanging=False))
        beside.append(_flow(stage, is_one_hanging=True))
        shown = f"p99 {alone[-1].percentile(0.99):.1f} ms alone, {beside[-1].percentile(0.99):.1f} ms beside"
        figures.progress(f"isolation: run {run} of {RUNS}: {shown} a hanging endpoint")
    p99, p99_alone = (figures.median([flow.percentile(0.99) for flow in flows]) for flows in (beside, alone))
    missing = sum(flow.missing for flow in (*alone, *beside))
    yield figures.at_most("isolation: events that never came", missing, 0, "events")
    yield figures.against("isolation: p99 beside a hanging endpoint", p99, p99_alone, "ms", bound=1.5)
    yield from _recovery(stage)


def _flow(stage: Stage, *, is_one_hanging: bool) -> pacing.Flow:
    """Send 20 events a second to one endpoint.

    If `is_one_hanging` is true, 500 more events wait for an endpoint that hangs.
    """
    hanging, healthy = backlog.subscribe(stage.addresses([HANGING, HEALTHY]))
    stage.receiver.ask("behave", endpoint=HANGING, status=200, seconds=HANG_SECONDS)
    with stage.worker() as worker:
        stage.receiver.ask("reset")
        backlog.emit_once([healthy])
        backlog.await_end(worker, [healthy])
        if is_one_hanging:
            backlog.fill([hanging], WAITING, pacing.MIXED)
            worker.until(
                lambda: stage.receiver.ask("max_in_flight", endpoint=HANGING) >= 10,
                within=10,
                what="ten requests that hang",
            )
        count = stage.scaled(RATE * SECONDS, minimum=RATE)
        flow = pacing.flow(stage, [healthy], rate=RATE, count=count)
        backlog.retire([hanging, healthy])
        stage.receiver.ask("behave", endpoint=HANGING, status=200, seconds=0)
    return flow


def _recovery(stage: Stage) -> Iterator[Figure]:
    """Measure two recoveries, and yield the worse figures.

    After its recovery, one receiver answers immediately, and the other receiver takes a second.
    """
    in_flight, in_a_second, in_all = [], [], []
    for seconds in (0.0, BUSY_SECONDS):
        figures.progress(f"isolation: an endpoint recovers with {DUE} due and answers after {seconds:g} s")
        maximum, starts = _recovered(stage, seconds)
        in_flight.append(maximum)
        in_a_second.append(_max_in_a_second(starts))
        in_all.append(len(starts))
    yield figures.at_most("isolation: in flight at a recovered endpoint", max(in_flight), 10, "requests")
    yield figures.at_most("isolation: starts there in any one second", max(in_a_second), 50, "requests")
    yield figures.at_least("isolation: starts there in ten seconds", min(in_all), MINIMUM, "requests")


def _recovered(stage: Stage, seconds: float) -> tuple[int, list[int]]:
    """For the 10 s after a recovery, return the maximum number of requests in flight and all times of arrival."""
    (merchant,) = backlog.subscribe(stage.addresses([RECOVERED]))
    stage.receiver.ask("behave", endpoint=RECOVERED, status=200, seconds=HANG_SECONDS)
    stage.receiver.ask("reset")
    with stage.worker() as worker:
        backlog.fill([merchant], stage.scaled(DUE, minimum=1000))
        stage.await_arrivals(worker, 1, within=10)
        time.sleep(DOWN_SECONDS)
        stage.receiver.ask("reset")
        stage.receiver.ask("behave", endpoint=RECOVERED, status=200, seconds=seconds)
        start = time.time_ns()
        time.sleep(SECONDS)
        maximum = stage.receiver.ask("max_in_flight", endpoint=RECOVERED)
        starts = [at for _, at, _ in stage.arrivals() if at - start < SECONDS * SECOND]
        backlog.retire([merchant])
        stage.receiver.ask("behave", endpoint=RECOVERED, status=200, seconds=0)
    return maximum, starts


def _max_in_a_second(moments: list[int]) -> int:
    """Return the maximum number of arrivals in any period of one second."""
    maximum, oldest = 0, 0
    for newest, at in enumerate(moments):
        while at - moments[oldest] >= SECOND:
            oldest += 1
        maximum = max(maximum, newest - oldest + 1)
    return maximum
