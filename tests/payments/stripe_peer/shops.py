"""A shop that receives Stripe's events."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Shop(HTTPServer):
    """A receiver that keeps each message and its signature, and answers as the test requires."""

    def __init__(self) -> None:
        self.told: list[tuple[bytes, str]] = []
        self.status = 200
        super().__init__(("127.0.0.1", 0), _Told)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"


class _Told(BaseHTTPRequestHandler):
    server: Shop

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.told.append((body, self.headers["Stripe-Signature"]))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log no request."""


@contextmanager
def listening() -> Iterator[Shop]:
    """Run a shop until the block ends."""
    with Shop() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield server
        server.shutdown()
