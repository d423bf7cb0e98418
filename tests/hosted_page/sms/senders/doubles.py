"""Test doubles of SMS carriers.

An HTTP server on this machine passes each request to a double, and returns the double's response.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

# How many seconds a double with the fault `hang` waits at most before it closes the connection.
HANGS = 20.0


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    form: dict[str, str]


@dataclass(frozen=True)
class Answer:
    status: int
    body: str
    content_type: str = "application/json"


@dataclass
class Double:
    """A carrier that responds with the result of `act`.

    With the `fault` `hang`, the carrier does not respond. With `reset`, the carrier resets the connection.
    """

    act: Callable[[Request], Answer]
    fault: str = ""
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def serving(act: Callable[[Request], Answer]) -> Iterator[Double]:
    double = Double(act)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            _answer(self, double)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    double.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield double
    finally:
        double.closed.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(handler: BaseHTTPRequestHandler, double: Double) -> None:
    body = handler.rfile.read(int(handler.headers.get("Content-Length", 0))).decode()
    given = parse_qsl(body, keep_blank_values=True, strict_parsing=True)
    assert len(dict(given)) == len(given), "no field comes twice"
    headers = {name.lower(): value for name, value in handler.headers.items()}
    request = Request(handler.command, handler.path, headers, dict(given))
    double.requests.append(request)
    if double.fault == "hang":
        double.closed.wait(HANGS)
    if double.fault:
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()
        return
    answer = double.act(request)
    handler.send_response(answer.status)
    handler.send_header("Content-Type", answer.content_type)
    handler.send_header("Content-Length", str(len(answer.body.encode())))
    handler.end_headers()
    handler.wfile.write(answer.body.encode())


def closed_port() -> int:
    """Return a port on this machine on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
