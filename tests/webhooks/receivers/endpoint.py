"""A merchant's endpoint as a real HTTP server."""

import http.server
import threading


class Receiver:
    """An endpoint that takes `seconds` to answer. It counts the requests that it serves at the same time."""

    def __init__(self, *, http_status: int = 200, seconds: float = 0.0) -> None:
        self.http_status, self.seconds = http_status, seconds
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.at_once = self.max_at_once = 0
        self.released = threading.Event()
        self._counting = threading.Lock()
        receiver = self

        class Endpoint(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.serve(dict(self.headers), body)
                self.send_response(receiver.http_status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/hooks"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def serve(self, headers: dict[str, str], body: bytes) -> None:
        with self._counting:
            self.requests.append((headers, body))
            self.at_once += 1
            self.max_at_once = max(self.max_at_once, self.at_once)
        self.released.wait(self.seconds)
        with self._counting:
            self.at_once -= 1

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
