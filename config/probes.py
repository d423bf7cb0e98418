"""The port at which workers and beat answer /livez, /readyz and /metrics, as web processes do at theirs.

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

from config import health, metrics, telemetry

log = structlog.get_logger("probes")
SECONDS = 5.0  # that a peer has for its request, and for taking the answer


class Handler(BaseHTTPRequestHandler):
    """Answers one request, in a thread of its own."""

    timeout = SECONDS

    def do_GET(self) -> None:
        """Answer a probe."""
        try:
            status, body = health.answer(self.path, self.headers.get("Authorization", ""))
        finally:
            close_old_connections()
        self.send_response(status)
        self.send_header("Content-Type", metrics.CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing: probes come every few seconds."""


@signals.worker_init.connect
@signals.beat_init.connect
def begin(signal: Any = None, **_: Any) -> None:
    """Begin to measure, to tell and to answer."""
    telemetry.begin("worker" if signal is signals.worker_init else "beat")
    serve()


def serve() -> ThreadingHTTPServer | None:
    """Answer at PROBE_PORT from now on, unless it is 0; a port that is taken costs the probes alone."""
    if not settings.PROBE_PORT:
        return None
    try:
        server = ThreadingHTTPServer((settings.PROBE_HOST, settings.PROBE_PORT), Handler)
    except OSError as error:
        log.error("no probes", port=settings.PROBE_PORT, error=os.strerror(error.errno or 0))
        return None
    threading.Thread(target=server.serve_forever, name="probes", daemon=True).start()
    return server
