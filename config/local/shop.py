"""The demo shop: a merchant's backend, to try the service with and to integrate by.

It knows nothing but the public API and webhooks/signing.py, which you may copy. What it sells and how its pages
look is shop_front.py. The environment names SHOP_PORT, BASE_URL, SHOP_CLIENT_ID, SHOP_CLIENT_SECRET and
SHOP_STATE, the path of an SQLite file.
"""

import contextlib
import hmac
import json
import os
import secrets
import sqlite3
import threading
import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib import error, parse, request
from uuid import uuid4

from config.local import shop_front
from webhooks import signing

PORT, BASE_URL, STATE = int(os.environ["SHOP_PORT"]), os.environ["BASE_URL"], os.environ["SHOP_STATE"]
CLIENT = {"client_id": os.environ["SHOP_CLIENT_ID"], "client_secret": os.environ["SHOP_CLIENT_SECRET"]}
ADDRESS, MOST_BYTES = f"http://127.0.0.1:{PORT}", 65_536
DIRECTLY = request.build_opener(request.ProxyHandler({}))  # the service runs on this machine
FORM_TOKEN = secrets.token_urlsafe()  # no other site knows it, so none can have a browser refund an order
TABLES = (
    "signing_secret (client_id TEXT PRIMARY KEY, secret TEXT)",
    "orders (id TEXT PRIMARY KEY, title TEXT, placed_at TEXT, checkout_uuid TEXT, fulfilled_at TEXT)",
    "event (id TEXT PRIMARY KEY, type TEXT, checkout_uuid TEXT, received_at TEXT, done_at TEXT)",
)
token, renew_at = "", 0.0


class CallFailed(Exception):
    """The service's error code, or no_answer."""


def call(method: str, path: str, body: object = None, key: str = "") -> Any:
    """Call the merchant API and return the answer's `data`; `key` is an Idempotency-Key. Raises CallFailed."""
    global token, renew_at
    if time.monotonic() >= renew_at:
        answer = send("POST", "/oauth/token", {"grant_type": "client_credentials", **CLIENT}, {}, seconds=3)
        token, renew_at = answer["access_token"], time.monotonic() + answer["expires_in"] * 0.9
    headers = {"Authorization": f"Bearer {token}"} | ({"Idempotency-Key": key} if key else {})
    try:
        return send(method, f"/api/merchant/v1{path}", body, headers).get("data")
    except CallFailed as failure:
        renew_at = 0.0 if str(failure) == "invalid_token" else renew_at
        raise


def send(method: str, path: str, body: object, headers: dict[str, str], seconds: int = 10) -> Any:
    """Exchange JSON. A token (3 s) and a capture (10 s) fit together into the 15 s that a webhook may take."""
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} | headers
    asked = request.Request(BASE_URL + path, content, headers, method=method)
    try:
        with DIRECTLY.open(asked, timeout=seconds) as answer:
            return json.loads(answer.read() or "{}")
    except error.HTTPError as refused:
        code = f"http_{refused.code}"
        with contextlib.suppress(ValueError, LookupError, TypeError):
            code = json.load(refused)["error"]["code"]
        raise CallFailed(code) from None
    except (OSError, HTTPException, ValueError):
        raise CallFailed("no_answer") from None


def sql(statement: str, *values: str | None) -> list[Any]:
    """Run one statement, which commits by itself: each step of the shop can be repeated after a crash."""
    with contextlib.closing(sqlite3.connect(STATE, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute(statement, values).fetchall()


def moment(ago: int = 0) -> str:
    return (datetime.now(UTC) - timedelta(seconds=ago)).isoformat(timespec="milliseconds")[:23] + "Z"


def signing_secrets() -> list[str]:
    found = sql("SELECT secret FROM signing_secret WHERE client_id = ?", CLIENT["client_id"])
    return [row["secret"] for row in found]


def subscribe() -> None:
    """Register for all events. The secret is told only once: one that was lost is replaced at once."""
    answer = call("POST", "/webhooks/subscription", {"url": f"{ADDRESS}/webhooks", "event_types": ["*"]})
    if "signing_secret" not in answer and not signing_secrets():
        answer = call("POST", "/webhooks/secret/rotate", {"revoke_previous": True})
    if "signing_secret" in answer:
        sql("REPLACE INTO signing_secret VALUES (?, ?)", CLIENT["client_id"], answer["signing_secret"])


def buy(show: str, quantity: int) -> str:
    """Create a new order with its checkout, and return the page to pay it on."""
    order_id, items = str(uuid4()), shop_front.items(show, quantity)
    order = {
        "merchant_order_id": order_id,
        "total_amount": sum(item["quantity"] * item["unit_price"] for item in items),
        "currency": shop_front.CURRENCY,
        "items": items,
        "return_url": f"{ADDRESS}/orders/{order_id}",
        "cancel_url": f"{ADDRESS}/",
    }
    title = f"{quantity} × {items[0]['name']}"
    sql("INSERT INTO orders VALUES (?, ?, ?, NULL, NULL)", order_id, title, moment())
    try:
        checkout = call("POST", "/checkouts", order, key=order_id)
    except CallFailed:  # thanks to the key a second try never makes a second checkout
        checkout = call("POST", "/checkouts", order, key=order_id)
    sql("UPDATE orders SET checkout_uuid = ? WHERE id = ?", checkout["checkout_uuid"], order_id)
    print(f"order {order_id}: checkout {checkout['checkout_uuid']} created")
    return str(checkout["checkout_url"])


def receive(signature: str | None, body: bytes) -> tuple[int, str]:
    """Return status and text to answer a webhook with. A body of unproven origin is neither logged nor kept."""
    try:
        event = signing.verify(signature, body, signing_secrets(), int(time.time()))
    except signing.VerificationError as refused:
        print(f"webhook refused: {refused.reason}")
        return 400, refused.reason
    checkout_uuid = event["data"].get("checkout_uuid")
    sql("INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?, NULL)", event["id"], event["type"], checkout_uuid, moment())
    if sql("SELECT 1 FROM event WHERE id = ? AND done_at IS NOT NULL", event["id"]):
        print(f"webhook {event['id']}: known already")
        return 200, "known already"
    print(f"webhook {event['id']}: {event['type']}")
    try:
        if event["type"] == "checkout.authorized":
            capture(event["data"]["merchant_order_id"], checkout_uuid)
    except CallFailed as failure:
        print(f"webhook {event['id']}: to be sent again, {failure}")
        return 500, str(failure)
    sql("UPDATE event SET done_at = ? WHERE id = ?", moment(), event["id"])
    return 200, "done"


def capture(order_id: str, checkout_uuid: str) -> None:
    """Take the held money; its 200 alone fulfils the order. Raises CallFailed when another try may succeed."""
    try:
        call("POST", f"/checkouts/{checkout_uuid}/capture", {})
    except CallFailed as failure:
        if str(failure) != "not_capturable":
            raise
        print(f"order {order_id}: no longer capturable")
        return
    sql("UPDATE orders SET fulfilled_at = ? WHERE id = ? AND fulfilled_at IS NULL", moment(), order_id)
    print(f"order {order_id}: captured and fulfilled")


def refund(order: Any) -> None:
    """Give everything back. A second click repeats the ref; only after a failed refund is there a new one."""
    ...


class Site(BaseHTTPRequestHandler): ...
