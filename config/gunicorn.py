"""Gunicorn's configuration: one process per core, with as many threads as its slots need.

docs/operate.md explains the number of threads. The processes write their metrics to files in METRICS_DIR,
which is in memory by default. Each start deletes the files of the previous run.
"""

import os
from pathlib import Path
from typing import Any

if os.environ.get("METRICS_TOKEN"):  # must run before any module with metrics is imported
    counts = Path(os.environ.get("METRICS_DIR") or f"/dev/shm/checkout-{os.getuid()}")  # noqa: S108 - in RAM
    counts.mkdir(mode=0o700, parents=True, exist_ok=True)
    for former in counts.glob("*.db"):
        former.unlink()
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(counts)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.conf import settings

from config.variables import startup

startup.load_settings()
bind = settings.WEB_ADDRESS
workers = settings.WEB_CONCURRENCY or os.cpu_count() or 1
worker_class = "config.gunicorn_worker.Worker"
threads = 3 * (settings.PROVIDER_SLOTS + settings.CAPTURE_SLOTS) + 40
preload_app = True  # a process that replaces a dead one starts at once, because the code is already loaded
keepalive = 30
graceful_timeout = 20
worker_tmp_dir = "/dev/shm"  # noqa: S108 - for the heartbeat file; works with a read-only disk too
control_socket_disable = True


def post_fork(_arbiter: Any, _worker: Any) -> None:
    """Start the metrics, the error reports and the measurement of the replica's lag in a new process."""
    from config.lib.database import lag
    from config.monitoring import telemetry

    telemetry.start_reporting("web")
    lag.start_watching()


def child_exit(_arbiter: Any, worker: Any) -> None:
    """Remove the live gauges of a process that has ended. Keep its counters."""
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]  # untyped there
