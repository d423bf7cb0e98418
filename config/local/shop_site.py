"""The demo shop's site: its pages, and the address that takes its webhooks. Its backend is shop_backend.py.

The environment names SHOP_PORT, BASE_URL, SHOP_CLIENT_ID, SHOP_CLIENT_SECRET and SHOP_STATE, an SQLite file.
"""

import contextlib
import hmac
import os
import re
import secrets
import threading
import time
from datetime import datetime, timedelta
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import parse_qsl
from zoneinfo import ZoneInfo

from config.local import shop_backend

FRAME = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
ZONE = "Europe/London"
TONIGHT = datetime.now(ZoneInfo(ZONE)).replace(hour=19, minute=30, second=0, microsecond=0)
SHOWS = {  # place, pence, start
    "union-hall": ("Union Hall, London", 2250, TONIGHT + timedelta(days=21)),
    "boathouse": ("The Boathouse, Bristol", 1950, TONIGHT + timedelta(days=23)),
    "pier-nine": ("Pier Nine, Hull", 1800, TONIGHT + timedelta(days=28)),
}
MOST_TICKETS = 8
HEADLINES = {
    "created": "Waiting for your payment",
    "expired": "Not paid in time, nothing was taken",
    "authorized": "Your money is held while we confirm",
    "voided": "Not confirmed, nothing was taken",
    "captured": "Your tickets are ready",
    "refunding": "Your money is going back",
    "refunded": "You have your money back",
}
REFRESH_SECONDS = {"created": 5, "authorized": 1, "refunding": 2}  # the other states stay as they are
FORM_TOKEN = secrets.token_urlsafe()  # no other site knows it, so none can have a browser refund an order
SECURITY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
)


class Site(BaseHTTPRequestHandler):
    """One request to the shop."""

    shop: shop_backend.Shop
    timeout = 20

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        order = self._order(path)
        if path == "/":
            self._show(200, "Tickets", home())
        elif order is None:
            self._show(404, "Not found", notice("There is nothing here"))
        else:
            self._show_order(order)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"\d{1,5}", length):
            self._answer(413, "Too large")
            return
        body = self.rfile.read(int(length))
        if self.path == "/webhooks":
            self._answer(*self.shop.receive(self.headers.get("X-Service-Signature"), body))
            return
        form = dict(parse_qsl(body.decode("utf-8", "replace")))
        try:
            self._buy(form) if self.path == "/buy" else self._refund(form)
        except shop_backend.CallFailed as failure:
            print(f"{self.path} failed: {failure}")
            self._show(502, "Not done", notice("That did not work", f"The payment service says: {failure}."))

    def _buy(self, form: dict[str, str]) -> None:
        show, quantity = form.get("show", ""), form.get("quantity", "")
        if show not in SHOWS or not re.fullmatch(f"[1-{MOST_TICKETS}]", quantity):
            self._show(400, "Not for sale", notice("We do not sell that"))
        elif not self.shop.signing_secrets():  # nobody would confirm the payment
            self._show(503, "One moment", notice("The box office opens in a moment"))
        else:
            self._answer(303, "", Location=self.shop.buy(ticket(show), int(quantity)))

    def _refund(self, form: dict[str, str]) -> None:
        order = self._order(self.path.removesuffix("/refund"))
        if order is None:
            self._show(404, "Not found", notice("There is nothing here"))
        elif not hmac.compare_digest(form.get("form_token", "").encode(), FORM_TOKEN.encode()):
            self._show(403, "Not done", notice("This page was too old", "Go back, load it again and repeat."))
        else:
            self.shop.refund(order)
            self._answer(303, "", Location=f"/orders/{order['id']}")

    def _order(self, path: str) -> Any:
        """The order that the path names, once it has a checkout."""
        found = self.shop.rows("SELECT * FROM orders WHERE '/orders/' || id = ?", path)
        return found[0] if found and found[0]["checkout_uuid"] else None

    def _show_order(self, order: Any) -> None:
        try:
            checkout = self.shop.look_up(order)
        except shop_backend.CallFailed as failure:
            words = f"The payment service says: {failure}. This page tries again by itself."
            self._show(502, "One moment", notice("We cannot look that up just now", words), refresh=5)
            return
        # Read again: looking it up may have fulfilled it.
        content = order_page(self._order(f"/orders/{order['id']}"), checkout, self.shop.events(order))
        self._show(200, "Your order", content, refresh=REFRESH_SECONDS.get(checkout["status"], 0))

    def _show(self, status: int, title: str, content: str, refresh: int = 0) -> None:
        tag = f'<meta http-equiv="refresh" content="{refresh}">' if refresh else ""
        text = FRAME.substitute(title=title, refresh=tag, content=content)
        self._answer(status, text, **{"Content-Type": "text/html; charset=utf-8"})

    def _answer(self, status: int, text: str, **headers: str) -> None:
        content = text.encode()
        common = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(content))}
        common |= {"Cache-Control": "no-store", "Content-Security-Policy": SECURITY}
        self.send_response(status)
        for name, value in (common | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing of each request: the shop logs what happened."""


def ticket(show: str) -> dict[str, Any]:
    """The item to buy, without its quantity."""
    place, price, starts_at = SHOWS[show]
    custom_data = {"event_id": show, "event_start": starts_at.isoformat(), "time_zone": ZONE}
    named = {"item_ref": show, "name": f"Night Ferries at {place}", "category": "ticket"}
    return named | {"unit_price": price, "custom_data": custom_data}


def home() -> str:
    numbers = "".join(f"<option>{number}</option>" for number in range(1, MOST_TICKETS + 1))
    fee = shop_backend.BOOKING_FEE["unit_price"]
    shows = [
        f"""<section class="card show"><div><h2>{escape(place)}</h2><p>{starts_at:%A} {starts_at.day}
        {starts_at:%B}, {starts_at:%H:%M}</p><p>£{price / 100:.2f} + £{fee / 100:.2f} booking fee</p></div>
        <form class="buy" method="post" action="/buy"><input type="hidden" name="show" value="{show}">
        <label>Tickets <select name="quantity">{numbers}</select></label><button>Buy</button></form></section>"""
        for show, (place, price, starts_at) in SHOWS.items()
    ]
    return (
        f"<h1>Three nights by the water</h1><p>Pay by card, and split it with your mates.</p>{''.join(shows)}"
    )


def notice(headline: str, words: str = "") -> str:
    return f'<h1>{escape(headline)}</h1><p>{escape(words)}</p><p class="actions"><a class="button" href="/">Back to the tickets</a></p>'


def order_page(order: Any, checkout: Any, events: list[Any]) -> str:
    """What happened to an order, and what can be done next."""
    status, stamp = checkout["status"], "ticket" if checkout["status"] == "captured" else "ticket void"
    parts = [f"<h1>{HEADLINES[status]}</h1><p>Order {order['id'][:8]}, £{checkout['amount'] / 100:.2f}</p>"]
    code = f"<b>NF-{order['id'][-6:].upper()}</b>" if order["fulfilled_at"] else ""
    parts.append(
        f'<section class="card {stamp if code else ""}"><h2>{escape(order["title"])}</h2>{code}</section>'
    )
    rows = "".join(
        f"<li>{escape(said)}<time>{at[11:23]}</time></li>" for at, said in story(order, checkout, events)
    )
    parts.append(f'<section class="card"><h2>What happened</h2><ol>{rows}</ol></section>')
    if status == "created":
        parts.append(
            f'<p class="actions"><a class="button" href="{escape(checkout["checkout_url"])}">Pay now</a></p>'
        )
    if status == "captured":
        parts.append(
            f"""<form class="actions" method="post" action="/orders/{order["id"]}/refund">
            <input type="hidden" name="form_token" value="{FORM_TOKEN}"><button class="quiet">Refund</button></form>"""
        )
    return "".join(parts)


def story(order: Any, checkout: Any, events: list[Any]) -> list[tuple[str, str]]:
    """When what happened, oldest first."""
    told = [
        (order["placed_at"], "Order placed"),
        (checkout.get("authorized_at"), "Money held on the card"),
        *((event["received_at"], f"Webhook {event['type']} received and verified") for event in events),
        (checkout.get("captured_at"), "Captured: the money has moved"),
        (order["fulfilled_at"], "Tickets issued"),
        (checkout.get("voided_at"), "Hold released"),
        (checkout.get("expired_at"), "Expired unpaid"),
        *((refund["created_at"], "Refund accepted") for refund in checkout.get("refunds", [])),
        (checkout.get("last_refund_at"), "Refunded in full"),
    ]
    return sorted((at, said) for at, said in told if at)


def serve(shop: "Shop", port: int) -> None:
    """Answer on 127.0.0.1 until interrupted."""
    Site.shop = shop
    with contextlib.suppress(KeyboardInterrupt):
        ThreadingHTTPServer(("127.0.0.1", port), Site).serve_forever()
