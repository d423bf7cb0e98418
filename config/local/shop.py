"""The demo shop: a merchant's whole backend in one file, to try the service with and to integrate by.

It knows nothing but the public API and webhooks/signing.py, which you may copy. The environment names SHOP_PORT,
BASE_URL, SHOP_CLIENT_ID, SHOP_CLIENT_SECRET and SHOP_STATE, the path of its SQLite file. Amounts are in pence.
"""

import contextlib
import functools
import http.server
import json
import os
import re
import secrets
import sqlite3
import string
import threading
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from html import escape
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qsl
from uuid import uuid4
from zoneinfo import ZoneInfo

from webhooks import signing

Json = dict[str, Any]

ZONE, FEE = "Europe/London", 175
TODAY = datetime.now(ZoneInfo(ZONE)).replace(hour=19, minute=30, second=0, microsecond=0)
SHOWS = {  # place, price, days ahead
    "union-hall": ("Union Hall, London", 2250, 21),
    "boathouse": ("The Boathouse, Bristol", 1950, 23),
    "pier-nine": ("Pier Nine, Hull", 1800, 28),
}
HEADLINES = {
    "created": "Waiting for your payment",
    "expired": "Not paid in time. Nothing was taken.",
    "authorized": "Your money is held. We are confirming your order.",
    "voided": "Not confirmed. Nothing was taken.",
    "captured": "Your tickets are ready",
    "refunding": "Your money is going back",
    "refunded": "You have your money back",
}
TABLES = """
signing_secret (client_id TEXT PRIMARY KEY, secret TEXT)
orders (id TEXT PRIMARY KEY, title TEXT, total INT, placed_at TEXT, checkout_uuid TEXT, fulfilled_at TEXT)
event (id TEXT PRIMARY KEY, type TEXT, checkout_uuid TEXT, received_at TEXT, done_at TEXT)
"""
PAGE = string.Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the service is on this machine


class CallFailed(Exception):
    """The service's error code, or no_answer."""


class Api:
    """The service's API, with an access token that is kept until shortly before it expires."""

    def __init__(self, base_url: str, client_id: str, client_secret: str) -> None:
        self.client_id, self._base_url, self._client_secret = client_id, base_url, client_secret
        self._token, self._renew_at = "", 0.0

    def call(self, method: str, path: str, body: Json | None = None, key: str = "") -> Json:
        """Return the answer's `data`; `key` is an Idempotency-Key. Raises CallFailed."""
        if time.monotonic() >= self._renew_at:
            client = {"client_id": self.client_id, "client_secret": self._client_secret}
            answer = self._send("POST", "/oauth/token", {"grant_type": "client_credentials", **client}, {}, seconds=3)
            self._token, self._renew_at = answer["access_token"], time.monotonic() + answer["expires_in"] * 0.9
        headers = {"Authorization": f"Bearer {self._token}"} | ({"Idempotency-Key": key} if key else {})
        try:
            content: Json = self._send(method, f"/api/merchant/v1{path}", body, headers).get("data", {})
        except CallFailed as failure:
            if str(failure) == "invalid_token":
                self._renew_at = 0.0
            raise
        return content

    def _send(self, method: str, path: str, body: Json | None, headers: Json, seconds: int = 10) -> Json:
        # A token (3 s) and a capture (10 s) fit together into a webhook's 15 s.
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} | headers
        request = urllib.request.Request(self._base_url + path, content, headers, method=method)
        try:
            with OPENER.open(request, timeout=seconds) as answer:
                return dict(json.loads(answer.read() or b"{}"))
        except HTTPError as refused:
            with contextlib.suppress(ValueError, KeyError, TypeError), refused:
                raise CallFailed(json.load(refused)["error"]["code"]) from None
            raise CallFailed(f"http_{refused.code}") from None
        except (OSError, HTTPException, ValueError):
            raise CallFailed("no_answer") from None


class Shop:
    """Orders, and the events that drive them. Each statement commits by itself, each step may be repeated."""

    def __init__(self, api: Api, address: str, state: str) -> None:
        self.api, self._address, self._state = api, address, state
        self.form_token = secrets.token_urlsafe()
        for table in TABLES.strip().splitlines():
            self.rows(f"CREATE TABLE IF NOT EXISTS {table}")

    def rows(self, statement: str, *values: object) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self._state, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(statement, values).fetchall()

    def signing_secrets(self) -> list[str]:
        found = self.rows("SELECT secret FROM signing_secret WHERE client_id = ?", self.api.client_id)
        return [row["secret"] for row in found]

    def subscribe(self) -> None:
        """Register for all events. The secret is shown once only: one that is lost is replaced at once."""
        wanted = {"url": f"{self._address}/webhooks", "event_types": ["*"]}
        answer = self.api.call("POST", "/webhooks/subscription", wanted)
        if "signing_secret" not in answer and not self.signing_secrets():
            answer = self.api.call("POST", "/webhooks/secret/rotate", {"revoke_previous": True})
        if "signing_secret" in answer:
            own = (self.api.client_id, answer["signing_secret"])
            self.rows("INSERT OR REPLACE INTO signing_secret VALUES (?, ?)", *own)
        log("webhook subscription registered")

    def buy(self, show: str, quantity: int) -> str:
        """Create an order's checkout and return the page to pay it on."""
        (place, price, days), order_id = SHOWS[show], str(uuid4())
        starts_at = (TODAY + timedelta(days)).isoformat()
        custom = {"event_id": show, "event_start": starts_at, "time_zone": ZONE}
        lines = [
            {"item_ref": show, "name": place, "unit_price": price, "category": "ticket", "custom_data": custom},
            {"item_ref": "fee", "name": "Booking fee", "unit_price": FEE, "category": "fee"},
        ]
        order = {
            "merchant_order_id": order_id,
            "total_amount": quantity * (price + FEE),
            "currency": "GBP",
            "return_url": f"{self._address}/orders/{order_id}",
            "cancel_url": f"{self._address}/",
            "items": [line | {"quantity": quantity, "currency": "GBP"} for line in lines],
        }
        title = f"{quantity} × {place}"
        self.rows("INSERT INTO orders (id, title, total, placed_at) VALUES (?, ?, ?, ?)", order_id, title, ...)
        ...
