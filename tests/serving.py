"""Runs a small HTTP server in a thread of the test process."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Reply(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler, bytes], Reply]) -> Iterator[str]:
    """Run a server on 127.0.0.1 for the duration of the block, and yield its address.

    The server calls `answer` with each request and its body.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            reply = answer(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            """Do not log requests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
