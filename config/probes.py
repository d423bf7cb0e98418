"""The HTTP server for /livez, /readyz and /metrics in workers and beat. Web processes need no such server.

Rules environment.probes, environment.metrics.
"""

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import structlog
from celery import signals
from django.conf import settings
from django.db import close_old_connections

from config import health
from config.monitoring import metrics, telemetry

log = structlog.get_logger("probes")
SECONDS = 5.0  # how long a client may take to send its request and to receive the answer


class Handler(BaseHTTPRequestHandler):
    """Handler of one request, which runs in its own thread."""

    timeout = SECONDS

    def do_GET(self) -> None:
        """Answer a probe."""
        try:
            status, body = health.answer_probe(self.path, self.headers.get("Authorization", ""))
        finally:
            close_old_connections()
        self.send_response(status)
        self.send_header("Content-Type", metrics.CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Skip the access log, because probes come every few seconds."""


@signals.worker_init.connect
@signals.beat_init.connect
def begin(signal: Any = None, **_: Any) -> None:
    """Start the metrics, the error reports and the probe server in this process."""
    telemetry.start_reporting("worker" if signal is signals.worker_init else "beat")
    serve()


def serve() -> ThreadingHTTPServer | None:
    """Start a server that answers probes at PROBE_PORT, and return it.

    Return None if PROBE_PORT is 0, or if the port is in use. The process then runs without probes.
    """
    if not settings.PROBE_PORT:
        return None
    try:
        server = ThreadingHTTPServer((settings.PROBE_HOST, settings.PROBE_PORT), Handler)
    except OSError as error:
        log.error("no probes", port=settings.PROBE_PORT, error=os.strerror(error.errno or 0))
        return None
    threading.Thread(target=server.serve_forever, name="probes", daemon=True).start()
    return server
