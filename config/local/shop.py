"""The demo shop, which is an example of a merchant's backend. Use it to try the service or as a model.

The shop calls the public API through shop_api.py. It also uses webhooks/signing.py, which you may copy. Its
pages are in shop_site.py. The environment sets SHOP_PORT, BASE_URL, SHOP_CLIENT_ID, SHOP_CLIENT_SECRET and
SHOP_STATE, and also SHOP_URL if the shop's public address is not on this machine.
"""

import contextlib
import os
import secrets
import sqlite3
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from config.local import shop_site
from config.local.shop_api import Api, CallFailed
from webhooks import signing

ZONE, FEE = "Europe/London", 175  # pence
CATCH_UP_SECONDS = 60  # the pause between two calls of `catch_up`, in seconds
UNRESOLVED = ("outcome_unknown", "operation_in_progress")
REPEAT_SECONDS, PAUSE_SECONDS = 2.0, 1.0
TONIGHT = datetime.now(ZoneInfo(ZONE)).replace(hour=19, minute=30, second=0, microsecond=0)
# To test the shop, the portal's checklist makes orders in the shop's name. Such orders exist only in the sandbox.
SANDBOX_PREFIX = "trial-"
SHOWS = {  # place, price, start
    "union-hall": ("Union Hall, London", 2250, TONIGHT + timedelta(days=21)),
    "boathouse": ("The Boathouse, Bristol", 1950, TONIGHT + timedelta(days=23)),
    "pier-nine": ("Pier Nine, Hull", 1800, TONIGHT + timedelta(days=28)),
}
TABLES = (
    "signing_secret (client_id TEXT PRIMARY KEY, secret TEXT)",
    "orders (id TEXT PRIMARY KEY, title TEXT, placed_at TEXT, checkout_uuid TEXT, fulfilled_at TEXT)",
    "event (id TEXT PRIMARY KEY, type TEXT, checkout_uuid TEXT, received_at TEXT, done_at TEXT)",
    "feed (name TEXT PRIMARY KEY, cursor TEXT)",
)


class Shop:
    """The shop's orders and their steps. Each step is a separate commit, so it can be repeated after a crash."""

    shows, fee = SHOWS, FEE

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
        """Return a list with the secret that signs webhooks. Before the shop is subscribed, the list is empty."""
        rows = self.rows("SELECT secret FROM signing_secret WHERE client_id = ?", self.api.client_id)
        return [row["secret"] for row in rows]

    def subscribe(self) -> None:
        """Subscribe to all events. Rotate a lost signing secret, because the service shows a secret only once."""
        subscription = {"url": f"{self.address}/webhooks", "event_types": ["*"]}
        answer = self.api.call("POST", "/webhooks/subscription", subscription)
        if "signing_secret" not in answer and not self.signing_secrets():
            answer = self.api.call("POST", "/webhooks/secret/rotate", {"revoke_previous": True})
        if "signing_secret" in answer:
            own = (self.api.client_id, answer["signing_secret"])
            self.rows("REPLACE INTO signing_secret VALUES (?, ?)", *own)
        print(
            f"subscribed to webhooks at {subscription['url']}, the endpoint of the demo shop's own merchant"
        )

    def buy(self, show: str, quantity: int) -> str:
        """Place an order, create its checkout, and return the address of the customer's payment page."""
        order_id, items = self._new_number(), order_lines(show, quantity)
        order = {
            "merchant_order_id": order_id,
            "items": items,
            "total_amount": sum(item["quantity"] * item["unit_price"] for item in items),
            "currency": "GBP",
            "return_url": f"{self.address}/orders/{order_id}",
            "cancel_url": f"{self.address}/",
        }
        title = f"{quantity} × {items[0]['name']}"
        self.rows("INSERT INTO orders VALUES (?, ?, ?, NULL, NULL)", order_id, title, api_time())
        try:
            checkout = self.api.call("POST", "/checkouts", order, key=order_id)
        except CallFailed:  # the key makes a second call safe, because it never creates a second checkout
            checkout = self.api.call("POST", "/checkouts", order, key=order_id)
        self.rows("UPDATE orders SET checkout_uuid = ? WHERE id = ?", checkout["checkout_uuid"], order_id)
        print(f"order {order_id}: checkout {checkout['checkout_uuid']} created")
        return str(checkout["checkout_url"])

    def _new_number(self) -> str:
        while True:
            number = f"A-{secrets.randbelow(90_000) + 10_000}"
            if not self.rows("SELECT 1 FROM orders WHERE id = ?", number):
                return number

    def receive(self, signature: str | None, body: bytes) -> tuple[int, str]:
        """Process a webhook. Return the status and the text of the response.

        An unverified body is neither logged nor stored.
        """
        known = self.signing_secrets()
        if not known:
            return 503, "not subscribed yet"  # the service will send the webhook again
        try:
            event = signing.verify(signature, body, known, int(time.time()))
        except signing.VerificationError as refused:
            print(f"webhook refused: {refused.reason}")
            if refused.reason == "no_matching_signature":
                print(f"if the secret was rotated in the portal: remove {self._state}, and start again")
            return 400, refused.reason
        values = (event["id"], event["type"], event["data"].get("checkout_uuid"), api_time())
        self.rows("INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?, NULL)", *values)
        if self.rows("SELECT 1 FROM event WHERE id = ? AND done_at IS NOT NULL", event["id"]):
            print(f"webhook {event['id']}: known already")
            return 200, "known already"
        print(f"webhook {event['id']}: {event['type']}")
        try:
            if event["type"] == "checkout.authorized":
                self._capture(event["data"]["merchant_order_id"], event["data"]["checkout_uuid"])
        except CallFailed as failure:
            print(f"webhook {event['id']}: failed with {failure}, to be sent again")
            return 500, str(failure)
        self.rows("UPDATE event SET done_at = ? WHERE id = ?", api_time(), event["id"])
        return 200, "done"

    def _capture(self, order_id: str, checkout_uuid: str) -> None:
        """Capture the held money, and then fulfil the order. Raises CallFailed if a later attempt can succeed."""
        known = order_id.startswith(SANDBOX_PREFIX) or self.rows(
            "SELECT 1 FROM orders WHERE id = ?", order_id
        )
        # If the shop does not have the order, a cancel releases the held money.
        verb = "capture" if known else "cancel"
        try:
            self._call_until_known(f"/checkouts/{checkout_uuid}/{verb}")
        except CallFailed as failure:
            if str(failure) not in ("not_capturable", "not_cancellable"):
                raise
            print(f"order {order_id}: {failure}")
            return
        print(f"order {order_id}: {verb} succeeded")
        if known:
            fulfil = "UPDATE orders SET fulfilled_at = ? WHERE id = ? AND fulfilled_at IS NULL"
            self.rows(fulfil, api_time(), order_id)

    def _call_until_known(self, path: str) -> None:
        """Send a capture or a cancel, and repeat it while its outcome is unknown. Raises CallFailed.

        A webhook must be answered within 15 s, so no call begins later than REPEAT_SECONDS after the first.
        """
        end = time.monotonic() + REPEAT_SECONDS
        while True:
            try:
                self.api.call("POST", path, {})
                return
            except CallFailed as failure:
                if str(failure) not in UNRESOLVED or time.monotonic() + PAUSE_SECONDS > end:
                    raise
            time.sleep(PAUSE_SECONDS)

    def look_up(self, order: Any) -> Any:
        """Return an order's checkout. If the order is unfulfilled 30 s after the payment, capture the money first."""
        path = f"/checkouts/{order['checkout_uuid']}"
        checkout = self.api.call("GET", path)
        is_held = checkout["status"] in ("authorized", "captured") and not order["fulfilled_at"]
        if is_held and checkout["authorized_at"] < api_time(ago=30):
            self._capture(order["id"], order["checkout_uuid"])
            checkout = self.api.call("GET", path)
        return checkout

    def catch_up(self) -> None:
        """Process the checkouts that changed since the last call.

        This finds captures whose response was lost. It also finds failed refunds, because no event reports
        them.
        """
        cursor_rows = self.rows("SELECT cursor FROM feed")
        since = (
            {"cursor": cursor_rows[0]["cursor"]} if cursor_rows else {"updated_after": api_time(ago=86_400)}
        )
        page = self.api.call("GET", f"/checkouts?{urlencode({'sort': 'updated_at', **since})}")
        for changed in page["checkouts"]:
            for order in self.rows("SELECT * FROM orders WHERE checkout_uuid = ?", changed["checkout_uuid"]):
                self._make_up_for(order, changed)
        self.rows("REPLACE INTO feed VALUES ('checkouts', ?)", page["next_cursor"])

    def _make_up_for(self, order: Any, changed: Any) -> None:
        if changed["status"] == "captured" and not order["fulfilled_at"]:
            # The money is already captured. A repeated capture only fulfils the order.
            self._capture(order["id"], order["checkout_uuid"])
        if any(refund["status"] == "failed" for refund in changed.get("refunds", [])):
            print(f"order {order['id']}: a refund failed, nothing has gone back")

    def events(self, order: Any) -> list[Any]:
        """Return the received webhooks about an order."""
        return self.rows("SELECT * FROM event WHERE checkout_uuid = ?", order["checkout_uuid"])

    def refund(self, order: Any) -> None:
        """Refund the whole order. A second click sends the same reference, unless the first refund has failed."""
        path = f"/checkouts/{order['checkout_uuid']}"
        refunds = self.api.call("GET", path).get("refunds", [])
        failed = sum(refund["status"] == "failed" for refund in refunds)
        body = {
            "merchant_refund_ref": f"{order['checkout_uuid']}-{failed + 1}",
            "reason": "Asked for in the shop",
        }
        self.api.call("POST", f"{path}/refund", body)
        print(f"order {order['id']}: refund asked for")


def order_lines(show: str, quantity: int) -> list[dict[str, Any]]:
    """Return the lines of an order: the tickets for a show, and their booking fees."""
    place, price, starts_at = SHOWS[show]
    ticket = {
        "item_ref": show,
        "name": f"Night Ferries at {place}",
        "unit_price": price,
        "category": "ticket",
    }
    custom_data = {"event_id": show, "event_start": starts_at.isoformat(), "time_zone": ZONE}
    fee = {"item_ref": "booking-fee", "name": "Booking fee", "unit_price": FEE, "category": "fee"}
    each = {"quantity": quantity, "currency": "GBP"}
    return [ticket | each | {"custom_data": custom_data}, fee | each]


def api_time(ago: int = 0) -> str:
    """Return the time that was `ago` seconds ago, in the API's format."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def subscribe(shop: Shop) -> None:
    """Subscribe as soon as the service answers, because it might still be starting."""
    last_error = ""
    while True:
        try:
            return shop.subscribe()
        except CallFailed as failure:
            if last_error != str(failure):
                print(f"not subscribed to webhooks yet: {failure}")
            last_error = str(failure)
            time.sleep(1)


def keep_caught_up(shop: Shop) -> None:
    """Subscribe, then call `catch_up` every minute."""
    subscribe(shop)
    while True:
        try:
            shop.catch_up()
        except CallFailed as failure:
            print(f"not caught up: {failure}")
        time.sleep(CATCH_UP_SECONDS)


def main() -> None:
    """Serve the shop until it is interrupted."""
    os.umask(0o077)  # the shop's database file contains the signing secret
    variables = os.environ
    api = Api(variables["BASE_URL"], variables["SHOP_CLIENT_ID"], variables["SHOP_CLIENT_SECRET"])
    address = variables.get("SHOP_URL") or f"http://127.0.0.1:{variables['SHOP_PORT']}"
    shop = Shop(api, address, variables["SHOP_STATE"])
    threading.Thread(target=keep_caught_up, args=[shop], daemon=True).start()
    shop_site.serve(shop, int(variables["SHOP_PORT"]))


if __name__ == "__main__":
    main()
