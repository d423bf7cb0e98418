"""The demo shop: a merchant's whole backend, to try the service with and to integrate by.

It knows nothing but the public API and webhooks/signing.py, which you may copy; its pages are in shop.html.
The environment names SHOP_PORT, BASE_URL, SHOP_CLIENT_ID, SHOP_CLIENT_SECRET and SHOP_STATE (an SQLite file).
"""

import contextlib
import json
import os
import re
import secrets
import sqlite3
import threading
import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from typing import Any
from urllib import error, parse, request
from uuid import uuid4
from zoneinfo import ZoneInfo

from webhooks import signing

ADDRESS, BASE_URL = f"http://127.0.0.1:{os.environ['SHOP_PORT']}", os.environ["BASE_URL"]
CLIENT = {"client_id": os.environ["SHOP_CLIENT_ID"], "client_secret": os.environ["SHOP_CLIENT_SECRET"]}
DIRECTLY = request.build_opener(request.ProxyHandler({}))  # the service runs on this machine
PARTS = re.split(r"<!-- (\w+) -->\n", Path(__file__).with_suffix(".html").read_text("utf-8"))[1:]
PAGES = {name: Template(text) for name, text in zip(PARTS[::2], PARTS[1::2], strict=True)}
REFRESH = {"created": 5, "authorized": 2, "refunding": 2}  # seconds; the other states stay as they are
FORM_TOKEN = secrets.token_urlsafe()  # no other site knows it, so none can make a browser ask for a refund
ZONE, FEE, MOST_BYTES = "Europe/London", 175, 65_536  # amounts are in pence
TONIGHT = datetime.now(ZoneInfo(ZONE)).replace(hour=19, minute=30, second=0, microsecond=0)
SHOWS = {
    "union-hall": ("Union Hall, London", 2250, TONIGHT + timedelta(days=21)),
    "boathouse": ("The Boathouse, Bristol", 1950, TONIGHT + timedelta(days=23)),
    "pier-nine": ("Pier Nine, Hull", 1800, TONIGHT + timedelta(days=28)),
}
TABLES = """
CREATE TABLE IF NOT EXISTS signing_secret (client_id TEXT PRIMARY KEY, secret TEXT);
CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, title TEXT, placed_at TEXT, checkout_uuid TEXT, done_at TEXT);
CREATE TABLE IF NOT EXISTS event (id TEXT PRIMARY KEY, type TEXT, checkout_uuid TEXT, received_at TEXT, done_at TEXT);
"""
token, renew_at = "", 0.0


class CallFailed(Exception):
    """The service's error code, or no_answer."""


def call(method: str, path: str, body: object = None, key: str = "") -> dict[str, Any]:
    """Call the merchant API and return the answer's `data`; `key` is an Idempotency-Key. Raises CallFailed."""
    global token, renew_at
    if time.monotonic() >= renew_at:
        answer = send("POST", "/oauth/token", {"grant_type": "client_credentials", **CLIENT}, {}, seconds=3)
        token, renew_at = answer["access_token"], time.monotonic() + answer["expires_in"] * 0.9
    headers = {"Authorization": f"Bearer {token}"} | ({"Idempotency-Key": key} if key else {})
    try:
        return dict(send(method, f"/api/merchant/v1{path}", body, headers).get("data", {}))
    except CallFailed as failure:
        renew_at = 0.0 if str(failure) == "invalid_token" else renew_at
        raise


def send(method: str, path: str, body: object, headers: dict[str, str], seconds: int = 10) -> dict[str, Any]:
    """One exchange of JSON. A token (3 s) and a capture (10 s) fit together into a webhook's 15 s."""
    content = None if body is None else json.dumps(body).encode()
    asked = request.Request(BASE_URL + path, content, {"Content-Type": "application/json", **headers}, method=method)
    try:
        with DIRECTLY.open(asked, timeout=seconds) as answer:
            return dict(json.loads(answer.read() or "{}"))
    except error.HTTPError as refused:
        code = f"http_{refused.code}"
        with contextlib.suppress(ValueError, LookupError, TypeError):
            code = json.load(refused)["error"]["code"]
        raise CallFailed(code) from None
    except (OSError, HTTPException, ValueError):
        raise CallFailed("no_answer") from None


def sql(statement: str, *values: str | None) -> list[Any]:
    """Run one statement, which commits by itself: every step of the shop may be repeated after a crash."""
    with contextlib.closing(sqlite3.connect(os.environ["SHOP_STATE"], isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute(statement, values).fetchall()


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def subscribe() -> None:
    """Register for all events. The secret is told only once: one that was lost is replaced at once."""
    answer = call("POST", "/webhooks/subscription", {"url": f"{ADDRESS}/webhooks", "event_types": ["*"]})
    if "signing_secret" not in answer and not signing_secrets():
        answer = call("POST", "/webhooks/secret/rotate", {"revoke_previous": True})
    if "signing_secret" in answer:
        sql("REPLACE INTO signing_secret VALUES (?, ?)", CLIENT["client_id"], answer["signing_secret"])
    print("subscribed to webhooks")


def signing_secrets() -> list[str]:
    return [row["secret"] for row in sql("SELECT secret FROM signing_secret WHERE client_id = ?", CLIENT["client_id"])]


def buy(show: str, quantity: int) -> str:
    """Create the checkout of a new order and return the page to pay it on."""
    (place, price, starts_at), order_id = SHOWS[show], str(uuid4())
    each = {"quantity": quantity, "currency": "GBP"}
    ticket = {"item_ref": show, "name": f"Night Ferries at {place}", "unit_price": price, "category": "ticket"}
    custom_data = {"event_id": show, "event_start": starts_at.isoformat(), "time_zone": ZONE}
    fee = {"item_ref": "booking-fee", "name": "Booking fee", "unit_price": FEE, "category": "fee"}
    order = {
        "merchant_order_id": order_id,
        "total_amount": quantity * (price + FEE),
        "currency": "GBP",
        "return_url": f"{ADDRESS}/orders/{order_id}",
        "cancel_url": f"{ADDRESS}/",
        "items": [ticket | each | {"custom_data": custom_data}, fee | each],
    }
    sql("INSERT INTO orders VALUES (?, ?, ?, NULL, NULL)", order_id, f"{quantity} × {place}", now())
    try:
        checkout = call("POST", "/checkouts", order, key=order_id)
    except CallFailed:  # the key makes a second try safe: it cannot become a second checkout
        checkout = call("POST", "/checkouts", order, key=order_id)
    sql("UPDATE orders SET checkout_uuid = ? WHERE id = ?", checkout["checkout_uuid"], order_id)
    print(f"order {order_id}: checkout {checkout['checkout_uuid']} created")
    return str(checkout["checkout_url"])


def receive(signature: str | None, body: bytes) -> tuple[int, str]:
    """Return the answer to a webhook. What does not prove its origin is neither read, logged nor kept."""
    try:
        event = signing.verify(signature, body, signing_secrets(), int(time.time()))
    except signing.VerificationError as refused:
        print(f"webhook refused: {refused.reason}")
        return 400, refused.reason
    values = (event["id"], event["type"], event["data"].get("checkout_uuid"), now())
    sql("INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?, NULL)", *values)
    if sql("SELECT 1 FROM event WHERE id = ? AND done_at IS NOT NULL", event["id"]):
        print(f"webhook {event['id']}: known already")
        return 200, "known already"
    print(f"webhook {event['id']}: {event['type']}")
    try:
        if event["type"] == "checkout.authorized":
            capture(event["data"]["merchant_order_id"], event["data"]["checkout_uuid"])
    except CallFailed as failure:
        print(f"webhook {event['id']}: must come again, capture says {failure}")
        return 500, str(failure)
    sql("UPDATE event SET done_at = ? WHERE id = ?", now(), event["id"])
    return 200, "done"


def capture(order_id: str, checkout_uuid: str) -> None:
    """Take the held money; its 200 alone fulfils the order. Raises CallFailed when it is worth another try."""
    try:
        call("POST", f"/checkouts/{checkout_uuid}/capture", {})
    except CallFailed as failure:
        if str(failure) != "not_capturable":
            raise
        print(f"order {order_id}: too late to capture")
    else:
        sql("UPDATE orders SET done_at = ? WHERE id = ? AND done_at IS NULL", now(), order_id)
        print(f"order {order_id}: captured, tickets issued")


def refund(order: Any) -> None:
    """Give everything back. A second click carries the same ref; only a failed refund gets another one."""
    earlier = len(call("GET", f"/checkouts/{order['checkout_uuid']}").get("refunds", []))
    ...


class Site(BaseHTTPRequestHandler):
    timeout = 20

    def do_GET(self): ...
