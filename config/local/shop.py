"""The demo shop: what a merchant's backend does, start to finish, to try the service with and to integrate by.

It knows nothing but the public API and webhooks/signing.py, which you may copy. Its pages are in shop_site.py.
"""

import contextlib
import json
import sqlite3
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from uuid import uuid4

from webhooks import signing

BOOKING_FEE = {"item_ref": "booking-fee", "name": "Booking fee", "unit_price": 175, "category": "fee"}  # pence
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the service runs on this machine
TABLES = (
    "signing_secret (client_id TEXT PRIMARY KEY, secret TEXT)",
    "orders (id TEXT PRIMARY KEY, title TEXT, placed_at TEXT, checkout_uuid TEXT, fulfilled_at TEXT)",
    "event (id TEXT PRIMARY KEY, type TEXT, checkout_uuid TEXT, received_at TEXT, done_at TEXT)",
)


class CallFailed(Exception):
    """The service refused: the text is its error code. Or there was no answer: it is no_answer."""


class Api:
    """The service's API for one client. Its access token is kept until shortly before it expires."""

    def __init__(self, base_url: str, client_id: str, client_secret: str) -> None:
        self.client_id, self._base_url, self._client_secret = client_id, base_url, client_secret
        self._token, self._renew_at = "", 0.0

    def call(self, method: str, path: str, body: object = None, *, key: str = "") -> Any:
        """Return the answer's `data`, None for 204. `key` is the Idempotency-Key. Raises CallFailed."""
        if time.monotonic() >= self._renew_at:
            self._renew_token()
        headers = {"Authorization": f"Bearer {self._token}"} | ({"Idempotency-Key": key} if key else {})
        try:
            return self._send(method, f"/api/merchant/v1{path}", body, headers, seconds=10).get("data")
        except CallFailed as failure:
            if str(failure) == "invalid_token":
                self._renew_at = 0.0
            raise

    def _renew_token(self) -> None:
        # With a capture (10 s) it fits into the 15 s that a webhook may take.
        client = {"client_id": self.client_id, "client_secret": self._client_secret}
        body = {"grant_type": "client_credentials", **client}
        answer = self._send("POST", "/oauth/token", body, {}, seconds=3)
        self._token, self._renew_at = answer["access_token"], time.monotonic() + answer["expires_in"] * 0.9

    def _send(self, method: str, path: str, body: object, headers: dict[str, str], *, seconds: int) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} | headers
        request = urllib.request.Request(self._base_url + path, content, headers, method=method)
        try:
            with DIRECTLY.open(request, timeout=seconds) as answer:
                return json.loads(answer.read() or "{}")
        except HTTPError as refused:
            code = f"http_{refused.code}"
            with contextlib.suppress(ValueError, LookupError, TypeError):
                code = json.load(refused)["error"]["code"]
            raise CallFailed(code) from None
        except (OSError, HTTPException, ValueError):
            raise CallFailed("no_answer") from None


class Shop:
    """Orders and what becomes of them. Each step commits by itself and may be repeated after a crash."""

    def __init__(self, api: Api, address: str, state: str) -> None:
        self.api, self.address, self._state = api, address, state
        for table in TABLES:
            self.rows(f"CREATE TABLE IF NOT EXISTS {table}")

    def rows(self, statement: str, *values: str | None) -> list[Any]:
        """Run one SQL statement and return its rows."""
        with contextlib.closing(sqlite3.connect(self._state, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(statement, values).fetchall()

    def signing_secrets(self) -> list[str]:
        """The secret that webhooks are signed with, once the shop is subscribed."""
        rows = self.rows("SELECT secret FROM signing_secret WHERE client_id = ?", self.api.client_id)
        return [row["secret"] for row in rows]

    def subscribe(self) -> None:
        """Register for all events. The secret is told only once: one that was lost is replaced at once."""
        wanted = {"url": f"{self.address}/webhooks", "event_types": ["*"]}
        answer = self.api.call("POST", "/webhooks/subscription", wanted)
        if "signing_secret" not in answer and not self.signing_secrets():
            answer = self.api.call("POST", "/webhooks/secret/rotate", {"revoke_previous": True})
        if "signing_secret" in answer:
            own = (self.api.client_id, answer["signing_secret"])
            self.rows("REPLACE INTO signing_secret VALUES (?, ?)", *own)

    def buy(self, ticket: dict[str, Any], quantity: int) -> str:
        """Place an order, create its checkout and return the page where the customer pays it."""
        order_id, each = str(uuid4()), {"quantity": quantity, "currency": "GBP"}
        order = {
            "merchant_order_id": order_id,
            "items": [ticket | each, BOOKING_FEE | each],
            "total_amount": quantity * (ticket["unit_price"] + BOOKING_FEE["unit_price"]),
            "currency": "GBP",
            "return_url": f"{self.address}/orders/{order_id}",
            "cancel_url": f"{self.address}/",
        }
        title = f"{quantity} × {ticket['name']}"
        self.rows("INSERT INTO orders VALUES (?, ?, ?, NULL, NULL)", order_id, title, moment())
        try:
            checkout = self.api.call("POST", "/checkouts", order, key=order_id)
        except CallFailed:  # the key makes a second try safe: it never becomes a second checkout
            checkout = self.api.call("POST", "/checkouts", order, key=order_id)
        self.rows("UPDATE orders SET checkout_uuid = ? WHERE id = ?", checkout["checkout_uuid"], order_id)
        print(f"order {order_id}: checkout {checkout['checkout_uuid']} created")
        return str(checkout["checkout_url"])

    def receive(self, signature: str | None, body: bytes) -> tuple[int, str]:
        """Return status and text of the answer to a webhook. What proves no origin is not logged nor kept."""
        secrets = self.signing_secrets()
        if not secrets:
            return 503, "not subscribed yet"  # it will be sent again
        try:
            event = signing.verify(signature, body, secrets, int(time.time()))
        except signing.VerificationError as refused:
            print(f"webhook refused: {refused.reason}")
            return 400, refused.reason
        about, values = event["data"], (event["id"], event["type"], moment())
        ...


def moment(ago: int = 0) -> str:
    """The time some seconds ago, as the API writes it."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
