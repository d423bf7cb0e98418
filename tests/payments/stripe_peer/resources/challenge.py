"""The bank's page for 3-D Secure, to which the payer is redirected.

(Documentation: "3D Secure", "Redirect to the bank website")
"""

import html
from contextlib import suppress
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from tests.payments.stripe_peer.books import Book, Peer, Thing, each_book
from tests.payments.stripe_peer.errors import Refusal
from tests.payments.stripe_peer.idempotency import Reply
from tests.payments.stripe_peer.resources import attempts

PATH = "/_peer/3d_secure/"
_PAGE = """<!doctype html><html lang="en"><title>3-D Secure</title><link rel="icon" href="data:,">
<h1>Your bank asks: is it you?</h1>
<form method="post"><p>{amount} {currency}</p><button name="answer" value="confirm">Confirm</button>
<button name="answer" value="refuse">Refuse</button></form></html>"""


def show(peer: Peer, intent_id: str, query: str) -> Reply:
    """Return the page. If the payer has already answered, redirect the payer to the shop."""
    with peer.lock:
        _, intent = _find(peer, intent_id, query)
        if intent["status"] != "requires_action":
            return _back(intent)
        page = _PAGE.format(amount=intent["amount"], currency=html.escape(intent["currency"]))
    return Reply(200, page.encode(), {"Content-Type": "text/html; charset=utf-8"})


def answer(peer: Peer, intent_id: str, query: str, body: str) -> Reply:
    """Record the payer's answer, and redirect the payer to the shop."""
    with peer.lock:
        book, intent = _find(peer, intent_id, query)
        if intent["status"] == "requires_action":
            _take(book, intent, parse_qs(body).get("answer") == ["confirm"])
        return _back(intent)


def _take(book: Book, intent: Thing, is_confirmed: bool) -> None:
    # The events that follow are not caused by an API request, so they must not name one.
    book.request_ids = {name: value for name, value in book.request_ids.items() if name == "version"}
    intent["_authenticated"] = is_confirmed
    if not is_confirmed:
        return attempts.refuse(book, intent)
    with suppress(Refusal):  # if the card is declined, the intent records the decline
        attempts.pay(book, intent)
    return None


def _find(peer: Peer, intent_id: str, query: str) -> tuple[Book, Thing]:
    secret = parse_qs(query).get("client_secret")
    for book in each_book(peer):
        intent = book.by_id(intent_id)
        if intent and [intent.get("client_secret")] == secret:
            return book, intent
    raise Refusal("There is no such page.", status=404)


def _back(intent: Thing) -> Reply:
    """Return a redirect to the intent's `return_url`, with the intent's id and secret and `redirect_status`."""
    has_paid = intent["status"] in ("requires_capture", "succeeded")
    added = {"payment_intent": intent["id"], "payment_intent_client_secret": intent["client_secret"]}
    added |= {"redirect_status": "succeeded" if has_paid else "failed"}
    url = urlsplit(intent["_return_url"])
    query = "&".join(filter(None, (url.query, urlencode(added))))
    return Reply(303, b"", {"Location": urlunsplit(url._replace(query=query))})
