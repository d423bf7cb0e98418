"""Measures the time from the commit to the first byte at the receiver. One of a hundred endpoints hangs."""

from collections.abc import Iterator

from tests.bench.webhooks import backlog, figures, pacing
from tests.bench.webhooks.figures import Figure
from tests.bench.webhooks.stage import Stage

ENDPOINTS = 100
RATE = 200
SECONDS = 30
HANG_SECONDS = 15.0
HANGING = 0
# The emitter must not be later than this. Otherwise, the rate would not be 200 events a second.
LATEST_MS = 500


def measure(stage: Stage) -> Iterator[Figure]:
    """Measure 200 events a second for 30 s. For healthy endpoints, the bounds are p95 ≤ 100 ms and p99 ≤ 250 ms."""
    figures.progress(f"latency: {RATE} events/s for {SECONDS} s, one endpoint of {ENDPOINTS} hangs")
    merchants = backlog.subscribe(stage.addresses(range(ENDPOINTS)))
    with stage.worker() as worker:
        stage.receiver.ask("reset")
        backlog.emit_once(merchants)
        stage.await_arrivals(worker, ENDPOINTS, within=30)
        backlog.await_end(worker, merchants)
        stage.receiver.ask("reset")
        stage.receiver.ask("behave", endpoint=HANGING, status=200, seconds=HANG_SECONDS)
        flow = pacing.flow(
            stage, merchants, rate=RATE, count=stage.scaled(RATE * SECONDS, minimum=RATE), without=HANGING
        )
        backlog.retire(merchants)
        stage.receiver.ask("behave", endpoint=HANGING, status=200, seconds=0)
    yield figures.without_bound("latency: healthy events measured", len(flow.delays), "events")
    yield figures.at_most("latency: events that never came", flow.missing, 0, "events")
    yield figures.at_most("latency: emitter behind its clock, at worst", flow.latest, LATEST_MS, "ms")
    yield figures.without_bound("latency: commit to first byte, p50", flow.percentile(0.5), "ms")
    yield figures.at_most("latency: commit to first byte, p95", flow.percentile(0.95), 100, "ms")
    yield figures.at_most("latency: commit to first byte, p99", flow.percentile(0.99), 250, "ms")
