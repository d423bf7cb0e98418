"""A later version of the service: its answers have fields and words that no current client knows."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests

ADDED = {"added_later": {"deep": [1, None]}}
# The later words for current words, by the name of the field.
WORDS = {
    ("status", "captured"): "taken",
    ("status", "refunding"): "sending_back",
    ("code", "checkout_not_found"): "checkout_archived",
    ("type", "checkout.authorized"): "checkout.promised",
    ("event_type", "checkout.authorized"): "checkout.promised",
}
LISTS = {"available_actions": "split", "event_types": "checkout.promised"}


def changed(value: Any) -> Any:
    """Return a current value as the later version has it."""
    if isinstance(value, list):
        return [changed(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {name: _field(name, part) for name, part in value.items()} | ADDED


def _field(name: str, value: Any) -> Any:
    if name in LISTS:
        return [*value, LISTS[name]]
    return WORDS.get((name, value), value) if isinstance(value, str) else changed(value)


@contextmanager
def running(base_url: str) -> Iterator[str]:
    """Run it in front of the current service until the block ends; yield its address."""

    class Tomorrow(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            sent = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in {"host", "connection"}
            }
            answer = requests.request(self.command, base_url + self.path, data=body, headers=sent, timeout=20)
            content = json.dumps(changed(answer.json())).encode() if answer.content else b""
            self.send_response(answer.status_code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            """Log no request, because the test looks at the client's result."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tomorrow) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
