"""A proxy that breaks connections and adds errors, for a provider that cannot do so on request."""

import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from config.lib.web import http
from tests.payments.providers.conformance.desk import CallFailure

KEY = "Idempotency-Key"
SECONDS = 30.0
HOP = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding", "content-encoding"}
DONE = (CallFailure.DONE_SILENT, CallFailure.DONE_ERROR)
ERRORS = (CallFailure.ERROR, CallFailure.DONE_ERROR, CallFailure.REPLAYED_ERROR)
FAILED = b'{"error": {"type": "api_error", "message": "An unknown error occurred."}}'


class Fault(NamedTuple):
    """A fault for the next request that has this method and whose path matches the regular expression."""

    method: str
    path: str
    failure: CallFailure


class Network(ThreadingHTTPServer):
    """A proxy that passes requests to `upstream` and returns its answers. Each of `faults` occurs once."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.faults: list[Fault] = []
        self.broken_keys: set[str] = set()
        super().__init__(("127.0.0.1", 0), _Line)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fault_for(self, method: str, path: str, key: str) -> CallFailure | None:
        """Return the fault for a request, or None. If an error is stored under the request's key, return it again."""
        for fault in self.faults:
            if fault.method == method and re.fullmatch(fault.path, path):
                self.faults.remove(fault)
                if fault.failure == CallFailure.REPLAYED_ERROR:
                    self.broken_keys.add(key)
                return fault.failure
        return CallFailure.REPLAYED_ERROR if key in self.broken_keys else None


class _Line(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Network

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        failure = self.server.fault_for(self.command, self.path.partition("?")[0], self.headers.get(KEY, ""))
        if failure is None or failure in DONE:
            answer = self._carry(body)
        if failure in ERRORS:
            self._send(500, FAILED)
        elif failure is not None:
            self._break()
        else:
            self._send(answer.status, answer.body)

    do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests, because they contain keys."""

    def _carry(self, body: bytes) -> http.Response:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
        return http.request(self.command, self.server.upstream + self.path, body, headers, seconds=SECONDS)

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _break(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True


@contextmanager
def carrying(upstream: str) -> Iterator[Network]:
    """Run a proxy for the duration of the block."""
    with Network(upstream) as network:
        threading.Thread(target=network.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield network
        network.shutdown()
