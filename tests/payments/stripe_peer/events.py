"""Sends signed events to webhook endpoints.

(Documentation: "Webhooks", "Verify webhook signatures manually")
"""

import hashlib
import hmac
import http.client
import json
import secrets
import time
from typing import Any
from urllib.parse import urlsplit

from tests.payments.stripe_peer.books import Book, Call, Thing, public_fields
from tests.payments.stripe_peer.errors import Refusal

_SECONDS = 10


def create_endpoint(call: Call) -> Thing:
    """Add an endpoint. Only this response shows its secret. (Reference: "Create a webhook endpoint")"""
    parameters, url = call.parameters, urlsplit(call.parameters["url"])
    if url.scheme not in ("http", "https") or not url.hostname:
        raise Refusal("Invalid URL: it has to be a valid URL.", "url_invalid", "url")
    if call.book.livemode and url.scheme != "https":
        raise Refusal("Invalid URL: in live mode it has to start with https.", "url_invalid", "url")
    secret = f"whsec_{secrets.token_hex(16)}"
    endpoint = call.book.make(
        "webhook_endpoint",
        **{name: parameters[name] for name in ("url", "enabled_events")},
        **{name: parameters.get(name) for name in ("api_version", "description")},
        **{"application": None, "metadata": parameters.get("metadata", {}), "status": "enabled"},
        **{"_connect": parameters.get("connect", False), "_secret": secret},
    )
    return endpoint | {"secret": secret}


def signature(secret: str, payload: bytes, at: int) -> str:
    """Return the value of the `Stripe-Signature` header for a message that is sent at the given time."""
    signed = hmac.new(secret.encode(), f"{at}.".encode() + payload, hashlib.sha256).hexdigest()
    return f"t={at},v1={signed}"


def due(book: Book, event_ids: list[str] | None) -> list[tuple[Thing, Thing]]:
    """Return pairs of an event and an endpoint that receives it.

    If `event_ids` has ids, return their events in the given order. Otherwise, return all events that were
    never sent, in any order. (Documentation: "Webhooks", "Event ordering")
    """
    if event_ids is not None:
        rows = [book.find("event", name) for name in event_ids]
    else:
        rows = [row for row in book.all("event") if not row.get("_sent")]
        book.peer.chance.shuffle(rows)
    return [(row, endpoint) for row in rows for endpoint in book.listeners(row["type"])]


def deliver(book: Book, options: dict[str, Any]) -> list[Thing]:
    """Send the due events, each of them `times` times, and return the responses.

    If `options` has a `secret`, the message is signed with it instead of the endpoint's secret, so the
    signature is forged. If `options` has an `age`, the signature is that many seconds old.
    """
    with book.peer.lock:
        rows = [
            (event, json.dumps(public_fields(event)), endpoint)
            for event, endpoint in due(book, options.get("events"))
        ]
    results = []
    for event, text, endpoint in rows:
        at = int(time.time()) - options.get("age", 0)
        header = signature(options.get("secret") or endpoint["_secret"], text.encode(), at)
        for _ in range(options.get("times", 1)):
            status = _post(endpoint["url"], text.encode(), header)
            results.append({"event": event["id"], "type": event["type"], "status": status})
        event |= {"_sent": True, "pending_webhooks": 0 if 200 <= results[-1]["status"] < 300 else 1}
    return results


def _post(address: str, payload: bytes, header: str) -> int:
    """Send a message. Return the status code of the response, or 0 if there was no response."""
    url = urlsplit(address)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    line = kind(url.hostname or "", url.port, timeout=_SECONDS)
    headers = {"Content-Type": "application/json; charset=utf-8", "Stripe-Signature": header}
    try:
        line.request("POST", url.path or "/", payload, headers | {"User-Agent": "Stripe/1.0"})
        return line.getresponse().status
    except OSError:
        return 0
    finally:
        line.close()
