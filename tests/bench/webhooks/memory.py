"""Measures whether a worker's memory grows with the number of deliveries that the worker has sent."""

from collections.abc import Iterator

from tests.bench.webhooks import backlog, figures
from tests.bench.webhooks.figures import Figure
from tests.bench.webhooks.stage import Stage

ENDPOINTS = 50
DELIVERIES = 100_000
PORTION = 10_000
SLOWEST = 50


def measure(stage: Stage) -> Iterator[Figure]:
    """Measure the worker's resident memory after every 10,000 of 100,000 deliveries.

    The memory must not vary by more than 20 MB.
    """
    merchants = backlog.subscribe(stage.addresses(range(ENDPOINTS)))
    portion = stage.scaled(PORTION, minimum=500)
    sizes = []
    with stage.worker() as worker:
        for number in range(1, DELIVERIES // PORTION + 1):
            stage.receiver.ask("reset")
            backlog.fill(merchants, portion)
            stage.await_arrivals(worker, portion, within=30 + portion / SLOWEST)
            backlog.await_end(worker, merchants)
            sizes.append(worker.resident_megabytes())
            figures.progress(f"memory: {sizes[-1]:.1f} MB after {number * portion} deliveries")
    yield figures.without_bound("memory: worker after the first tenth of the deliveries", sizes[0], "MB")
    yield figures.without_bound("memory: worker at its largest", max(sizes), "MB")
    yield figures.at_most("memory: from its smallest to its largest", max(sizes) - min(sizes), 20, "MB")
