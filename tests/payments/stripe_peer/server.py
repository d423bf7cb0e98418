"""The peer as a process: `python -m tests.payments.stripe_peer.server [port [address]]`.

It prints its address and serves requests. `address` is the base address at which browsers can reach the
peer's pages.
"""

import json
import socket
import struct
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.payments.stripe_peer import api, fields, switches
from tests.payments.stripe_peer.books import Peer
from tests.payments.stripe_peer.errors import Refusal
from tests.payments.stripe_peer.idempotency import Reply
from tests.payments.stripe_peer.resources import challenge

OWN = "/_peer/"


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, address: str = "") -> None:
        self.peer = Peer()
        super().__init__(("127.0.0.1", port), Line)
        self.address = address or f"http://127.0.0.1:{self.server_address[1]}"


class Line(BaseHTTPRequestHandler):
    """One connection to the peer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests, because they contain secrets."""

    def _serve(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if url.path == fields.SCRIPT:
            return self._send(fields.script())
        if url.path.startswith(OWN):
            return self._send(self._own(url.path, url.query, body))
        return self._ask(
            api.Request(self.command, url.path, url.query, body, self.headers, self.server.address)
        )

    def _own(self, path: str, query: str, body: str) -> Reply:
        peer, intent_id = self.server.peer, path.removeprefix(challenge.PATH)
        try:
            if path == fields.PATH:
                return fields.show(query) if self.command == "GET" else fields.take(peer, body)
            if path == fields.CONFIRM:
                return fields.confirm(peer, body, self.server.address)
            if not path.startswith(challenge.PATH):
                response = switches.turn(peer, path.removeprefix(OWN), json.loads(body or "{}"))
                return Reply(200, json.dumps(response).encode())
            if self.command == "GET":
                return challenge.show(peer, intent_id, query)
            return challenge.answer(peer, intent_id, query, body)
        except Refusal as refusal:
            return Reply(refusal.status, json.dumps({"error": refusal.as_json}).encode())

    def _ask(self, request: api.Request) -> None:
        """Respond to an API request. If a switch has set a fault for it, cause the fault."""
        peer = self.server.peer
        fault = switches.fault(peer, request.method, request.path) or {}
        mode, is_before = fault.get("mode"), fault.get("when") == "before"
        if is_before and mode == "error":
            return self._send(api.failed({}, fault.get("status", 500)))
        if is_before and mode in ("hang", "reset"):
            return self._break(fault)
        reply = api.answer(peer, request, fault)
        if mode == "repeat":
            reply = api.answer(peer, request)
        return self._break(fault) if mode in ("hang", "reset") else self._send(reply)

    def _break(self, fault: dict[str, Any]) -> None:
        if fault["mode"] == "hang":
            time.sleep(fault["seconds"])
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in ({"Content-Type": "application/json"} | reply.headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)


if __name__ == "__main__":
    server = Server(int(sys.argv[1]) if len(sys.argv) > 1 else 0, *sys.argv[2:])
    print(server.address, flush=True)
    server.serve_forever()
