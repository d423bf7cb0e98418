"""A simulated later version of the service. Its responses contain fields and values that do not exist today."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import requests

from tests.serving import Reply, serving

ADDED = {"added_later": {"deep": [1, None]}}
# Maps a field and its current value to the value in the later version.
WORDS = {
    ("status", "captured"): "taken",
    ("status", "refunding"): "sending_back",
    ("code", "checkout_not_found"): "checkout_archived",
    ("type", "checkout.authorized"): "checkout.promised",
    ("event_type", "checkout.authorized"): "checkout.promised",
}
OWN = {"metadata"}  # the merchant's own data, to which the service never adds fields
LISTS = {"available_actions": "split", "event_types": "checkout.promised"}


def changed(value: Any) -> Any:
    """Return a current JSON value as the later version would return it."""
    if isinstance(value, list):
        return [changed(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {name: _field(name, part) for name, part in value.items()} | ADDED


def _field(name: str, value: Any) -> Any:
    if name in OWN:
        return value
    if name in LISTS:
        return [*value, LISTS[name]]
    return WORDS.get((name, value), value) if isinstance(value, str) else changed(value)


@contextmanager
def running(base_url: str) -> Iterator[str]:
    """Run the later version for the duration of the block, as a proxy for the current service. Yield its address."""

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> Reply:
        hops = {"host", "connection"}
        sent = {name: value for name, value in request.headers.items() if name.lower() not in hops}
        response = requests.request(
            request.command, base_url + request.path, data=body, headers=sent, timeout=20
        )
        content = json.dumps(changed(response.json())).encode() if response.content else b""
        return Reply(response.status_code, content, {"Content-Type": "application/json"})

    with serving(answer) as address:
        yield address
