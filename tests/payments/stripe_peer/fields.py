"""Stripe's own card fields: its script, its frame, and the confirmation token that they create.

(Documentation: "Payment Element", "Build two-step confirmation")
"""

import html
import json
import re
from pathlib import Path
from urllib.parse import parse_qs

from tests.payments.stripe_peer.books import CONNECTED, PLATFORM, Call, Peer, each_book, shown
from tests.payments.stripe_peer.errors import Refusal
from tests.payments.stripe_peer.idempotency import Reply
from tests.payments.stripe_peer.resources import intents, methods

SCRIPT, PATH, CONFIRM = "/endive/stripe.js", "/_peer/fields", "/_peer/confirm"
KEYS = {"pk_test_peer": False, "pk_live_peer": True}  # whether each publishable key is a live key
HERE = Path(__file__).parent
# Card numbers from Stripe's documentation ("Testing"), and their names in `cards.CARDS`.
NUMBERS = {
    "4242424242424242": "pm_card_visa",
    "5555555555554444": "pm_card_mastercard",
    "4000000000000002": "pm_card_chargeDeclined",
    "4000000000009995": "pm_card_chargeDeclinedInsufficientFunds",
    "4000000000003220": "pm_card_threeDSecureRequired",
    "4000000000003055": "pm_card_threeDSecureOptional",
    "4000000000005126": "pm_card_refundFail",
    "4000000000000259": "pm_card_createDispute",
}


def script() -> Reply:
    return Reply(200, (HERE / "fields.js").read_bytes(), {"Content-Type": "text/javascript"})


def show(query: str) -> Reply:
    """Return the frame in the colours and fonts that the page requested."""
    asked = {name: html.escape(values[0]) for name, values in parse_qs(query).items()}
    page = (HERE / "fields.html").read_text()
    page = re.sub(r"\{([a-z]+[A-Z]\w+)\}", lambda named: asked.get(named[1], "inherit"), page)
    return Reply(200, page.encode(), {"Content-Type": "text/html; charset=utf-8"})


def take(peer: Peer, body: str) -> Reply:
    """Create a confirmation token from the input, in the page's account and in the mode of the page's key."""
    asked = json.loads(body)
    if asked["key"] not in KEYS or (asked["account"] or PLATFORM) not in (PLATFORM, *CONNECTED):
        raise Refusal("Invalid API Key provided.", status=401)
    if asked["number"] not in NUMBERS:
        return _said({"error": {"type": "card_error", "message": "Your card number is invalid."}})
    with peer.lock:
        book = peer.book(asked["account"] or PLATFORM, KEYS[asked["key"]])
        token = methods.add_token(book, methods.add(book, NUMBERS[asked["number"]]), {})
    return _said({"confirmationToken": shown(token)})


def confirm(peer: Peer, body: str, address: str) -> Reply:
    """Confirm a PaymentIntent by its client secret, even after an earlier attempt has failed.

    (Reference: Stripe.js, `confirmPayment`)
    """
    asked = json.loads(body)
    with peer.lock:
        for book in each_book(peer):
            for intent in book.all("payment_intent"):
                if intent["client_secret"] == asked["client_secret"] and KEYS[asked["key"]] == book.livemode:
                    method = methods.add(book, NUMBERS[asked["number"]])["id"]
                    given = {"payment_method": method, "return_url": asked["return_url"]}
                    book.asked = {name: value for name, value in book.asked.items() if name == "version"}
                    confirmed = intents.confirm(Call(book, given, intent["id"], address))
                    return _said({"paymentIntent": shown(confirmed)})
    raise Refusal("No such payment_intent.", "resource_missing", status=404)


def _said(said: object) -> Reply:
    return Reply(200, json.dumps(said).encode())
