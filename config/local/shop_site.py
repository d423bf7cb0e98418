"""The demo shop's website: its pages, and the address that receives its webhooks."""

import contextlib
import hmac
import re
import secrets
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from config.local.shop_api import CallFailed

if TYPE_CHECKING:
    from config.local.shop import Shop

_PARTS = re.split(r"<!-- (\w+) -->\n", Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
HTML = {name: Template(text) for name, text in zip(_PARTS[1::2], _PARTS[2::2], strict=True)}
HEADLINES = {
    "created": "Waiting for your payment",
    "expired": "Not paid in time. No money was taken",
    "authorized": "Your money is held while we confirm",
    "voided": "Not confirmed. No money was taken",
    "captured": "Your tickets are ready",
    "refunding": "Your money is going back",
    "refunded": "You have your money back",
}
REFRESH_SECONDS = {"created": 5, "authorized": 1, "refunding": 2}  # pages for other states are not refreshed
# The pages to which the payment page links.
WORDS = {
    "/help": ("Help", "Write to box-office@night-ferries.example, with the number of your order."),
    "/terms": ("Terms", "This is a demo shop. No real money moves, and no ticket opens a door."),
    "/privacy": ("Privacy", "This demo shop keeps your orders on this machine only."),
}
FORM_TOKEN = secrets.token_urlsafe()  # other sites cannot read it, so their forms cannot refund an order
SECURITY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
)


class Site(BaseHTTPRequestHandler):
    """Handler of one request to the shop."""

    shop: "Shop"
    timeout = 20

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        order = self._order(path)
        if path == "/":
            self._show(200, "Tickets", home(self.shop))
        elif path in WORDS:
            title, words = WORDS[path]
            self._show(200, title, notice(title, words))
        elif path == "/ready":
            self._answer(*((200, "open") if self.shop.signing_secrets() else (503, "not subscribed yet")))
        elif order is None:
            self._show(404, "Not found", notice("This page does not exist"))
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
        except CallFailed as failure:
            print(f"{self.path} failed: {failure}")
            self._show(502, "Not done", notice("That did not work", f"The payment service says: {failure}."))

    def _buy(self, form: dict[str, str]) -> None:
        show, quantity = form.get("show", ""), form.get("quantity", "")
        if show not in self.shop.shows or not re.fullmatch("[1-8]", quantity):
            self._show(400, "Not for sale", notice("We do not sell that"))
        elif not self.shop.signing_secrets():  # without webhooks, the shop would not capture the money
            self._show(503, "One moment", notice("The box office opens in a moment"))
        else:
            self._answer(303, "", Location=self.shop.buy(show, int(quantity)))

    def _refund(self, form: dict[str, str]) -> None:
        path, _, verb = self.path.rpartition("/")
        order = self._order(path) if verb == "refund" else None
        if order is None:
            self._show(404, "Not found", notice("This page does not exist"))
        elif not hmac.compare_digest(form.get("form_token", "").encode(), FORM_TOKEN.encode()):
            self._show(403, "Not done", notice("This page was too old", "Go back, load it again and repeat."))
        else:
            self.shop.refund(order)
            self._answer(303, "", Location=f"/orders/{order['id']}")

    def _order(self, path: str) -> Any:
        """Return the order that the path names, or None if it does not exist or has no checkout yet."""
        found = self.shop.rows("SELECT * FROM orders WHERE '/orders/' || id = ?", path)
        return found[0] if found and found[0]["checkout_uuid"] else None

    def _show_order(self, order: Any) -> None:
        try:
            checkout = self.shop.look_up(order)
        except CallFailed as failure:
            words = f"The payment service says: {failure}. This page tries again automatically."
            self._show(502, "One moment", notice("We cannot look that up just now", words), refresh=5)
            return
        # Read the order again, because `look_up` might have fulfilled it.
        content = order_page(self._order(f"/orders/{order['id']}"), checkout, self.shop.events(order))
        self._show(200, "Your order", content, refresh=REFRESH_SECONDS.get(checkout["status"], 0))

    def _show(self, status: int, title: str, content: str, refresh: int = 0) -> None:
        meta = fill("refresh", seconds=str(refresh)) if refresh else ""
        page = fill("head", meta, title=title) + fill("body", content)
        self._answer(status, page, **{"Content-Type": "text/html; charset=utf-8"})

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
        """Skip the access log, because the shop logs its own actions."""


def fill(part: str, inner: str = "", **values: str) -> str:
    """Fill the values into a part of the HTML file. `values` are escaped. `inner` is already HTML."""
    return HTML[part].substitute({name: escape(value) for name, value in values.items()}, inner=inner)


def pounds(amount: int) -> str:
    return f"£{amount / 100:.2f}"


def home(shop: "Shop") -> str:
    shows = ""
    for show, (place, price, start) in shop.shows.items():
        starts = f"{start:%A} {start.day} {start:%B}, {start:%H:%M}"
        shows += fill(
            "show", show=show, place=place, starts=starts, price=pounds(price), fee=pounds(shop.fee)
        )
    return fill("home", shows)


def notice(headline: str, words: str = "") -> str:
    return fill("notice", headline=headline, words=words)


def order_page(order: Any, checkout: Any, events: list[Any]) -> str:
    """Return an order's page. It shows what happened to the order, and what the customer can do next."""
    status, amount = checkout["status"], pounds(checkout["amount"])
    content = fill(
        "order",
        "".join(
            fill("step", sentence=sentence, at=at, at_clock=at[11:23])
            for at, sentence in order_steps(order, checkout, events)
        ),
        headline=HEADLINES[status],
        number=order["id"],
        amount=amount,
        title=order["title"],
        validity="" if status == "captured" else "void",
        code=f"NF-{order['checkout_uuid'][-6:].upper()}" if order["fulfilled_at"] else "",
    )
    if status == "created":
        content += fill("pay", url=checkout["checkout_url"])
    if status == "captured":
        content += fill("refund", order=order["id"], form_token=FORM_TOKEN, amount=amount)
    return content


def order_steps(order: Any, checkout: Any, events: list[Any]) -> list[tuple[str, str]]:
    """Return the steps of an order, each with its time, oldest first."""
    asked_for = ("Refund asked for", "Refund asked for, but it failed")
    refunds = checkout.get("refunds", [])
    steps = [
        (order["placed_at"], "Order placed"),
        (checkout.get("authorized_at"), "Money held on the card"),
        *((event["received_at"], f"Webhook verified: {event['type']}") for event in events),
        (checkout.get("captured_at"), "Captured: the money has moved"),
        (order["fulfilled_at"], "Tickets issued"),
        (checkout.get("voided_at"), "Hold released"),
        (checkout.get("expired_at"), "Expired unpaid"),
        *((refund["created_at"], asked_for[refund["status"] == "failed"]) for refund in refunds),
        (checkout.get("last_refund_at"), "Refunded in full"),
    ]
    return sorted((at, sentence) for at, sentence in steps if at)


def serve(shop: "Shop", port: int) -> None:
    """Answer on 127.0.0.1 until interrupted."""
    Site.shop = shop
    with contextlib.suppress(KeyboardInterrupt):
        ThreadingHTTPServer(("127.0.0.1", port), Site).serve_forever()
