"""How gunicorn serves: a process a core, with as many threads as docs/operate.md reckons for its slots.

Its processes count for /metrics in files of METRICS_DIR, in memory and emptied at each start.
"""

import os
from pathlib import Path
from typing import Any

if os.environ.get("METRICS_TOKEN"):  # before anything that counts is imported
    counts = Path(os.environ.get("METRICS_DIR") or f"/dev/shm/checkout-{os.getuid()}")  # noqa: S108 - in memory
    counts.mkdir(mode=0o700, parents=True, exist_ok=True)
    for former in counts.glob("*.db"):
        former.unlink()
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(counts)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.conf import settings

bind = "127.0.0.1:8000"
workers = int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)
worker_class = "config.gunicorn_worker.Worker"
threads = 3 * (settings.PROVIDER_SLOTS + settings.CAPTURE_SLOTS) + 40
preload_app = True  # a process that died is back at once, since what it runs is loaded already
keepalive = 30
graceful_timeout = 20
worker_tmp_dir = "/dev/shm"  # noqa: S108 - its sign of life is in memory, also where nothing else may be written
control_socket_disable = True


def post_fork(_arbiter: Any, _worker: Any) -> None:
    """Begin to measure and to tell in a new process, and to watch the replica."""
    from config import telemetry
    from config.lib.database import lag

    telemetry.begin("web")
    lag.begin()


def child_exit(_arbiter: Any, worker: Any) -> None:
    """Forget what a process that has ended last said of itself; what it has counted stays."""
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]  # untyped there
