"""The content of /metrics in Prometheus' format: the processes' metrics, and figures from the database.

Most metrics are defined next to the code that they measure. This module defines the rest.

Rule environment.metrics.
"""

import hmac
import os
from collections.abc import Iterator, Sequence

from django.conf import settings
from django.db import Error, close_old_connections, connection
from prometheus_client import REGISTRY, CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from config.lib import clock
from config.lib.process import repeating, sampling
from config.version import running_version
from portal.backoffice import figures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
POOL = Gauge("checkout_pool_connections", "Connections that a pool may have", multiprocess_mode="livesum")
POOL_IN_USE = Gauge("checkout_pool_connections_in_use", "Those in use", multiprocess_mode="livesum")
CLOCK = Gauge(
    "checkout_clock_ahead_seconds",
    "By how much the process's clock is ahead of the database's",
    multiprocess_mode="livemostrecent",
)
POOL_WAITING = Gauge("checkout_pool_waiting", "Threads that wait for one", multiprocess_mode="livesum")


def is_allowed(authorization: str) -> bool:
    """Return whether a request with this Authorization header may read the metrics.

    Return False if METRICS_TOKEN is not set.
    """
    expected = f"Bearer {settings.METRICS_TOKEN}"
    return bool(settings.METRICS_TOKEN) and hmac.compare_digest(authorization.encode(), expected.encode())


def metrics_text() -> bytes:
    """Return the metrics of all processes that use the same metrics folder, and the database's figures."""
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # untyped there
    return generate_latest(registry) + generate_latest(_Figures())


class _LastFigures:
    """The figures that this process last read from the database, so that no request waits for the database."""

    rows: Sequence[figures.Figure] = ()
    answers = False


def start_measuring() -> None:
    """Start measuring in this process."""
    sampling.begin()
    if settings.METRICS_TOKEN:
        repeating.start_repeating("figures", read_figures, figures.EVERY_SECONDS)


def read_figures() -> None:
    """Read the database's figures and clock. If the database does not answer, drop the old figures."""
    try:
        _LastFigures.rows, _LastFigures.answers = figures.read_figures(), True
        CLOCK.set(clock.seconds_ahead())
    except Error:
        _LastFigures.rows, _LastFigures.answers = (), False
    finally:
        close_old_connections()


class _Figures(Collector):
    """Collector that gives the version and the database's figures to the Prometheus library."""

    def collect(self) -> Iterator[Metric]:
        version = GaugeMetricFamily("checkout_version", "1, with the version that runs", labels=["version"])
        version.add_metric([running_version()], 1)
        yield version
        yield GaugeMetricFamily(
            "checkout_database_answers",
            "1 while the database answers, else 0",
            value=float(_LastFigures.answers),
        )
        for name, (label, words) in figures.TABLE.items():
            family = GaugeMetricFamily(name, words, labels=[label] if label else [])
            for each, value, number in _LastFigures.rows:
                if each == name:
                    family.add_metric([value] if label else [], number)
            yield family


@sampling.every_second
def _sample_pool() -> None:
    pool = getattr(connection, "pool", None)
    if pool is None:
        return
    stats = pool.get_stats()
    POOL.set(stats["pool_max"])
    POOL_IN_USE.set(stats["pool_size"] - stats["pool_available"])
    POOL_WAITING.set(stats["requests_waiting"])
