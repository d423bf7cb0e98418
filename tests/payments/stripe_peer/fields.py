"""Imitates Stripe's own card fields: the script, its frame, and the confirmation token that they create.

(Documentation: "Payment Element", "Build two-step confirmation")
"""

import html
import json
import re
from pathlib import Path
from urllib.parse import parse_qs

from tests.payments.stripe_peer.books import CONNECTED, PLATFORM, Call, Peer, each_book, public_fields
from tests.payments.stripe_peer.errors import Refusal
from tests.payments.stripe_peer.idempotency import Reply
from tests.payments.stripe_peer.resources import intents, methods

SCRIPT, PATH, CONFIRM = "/endive/stripe.js", "/_peer/fields", "/_peer/confirm"
KEYS = {"pk_test_peer": False, "pk_live_peer": True}  # true for a publishable key of live mode
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
    """Return the frame, in the colours and fonts that the page has requested."""
    style = {name: html.escape(values[0]) for name, values in parse_qs(query).items()}
    page = (HERE / "fields.html").read_text()
    page = re.sub(r"\{([a-z]+[A-Z]\w+)\}", lambda named: style.get(named[1], "inherit"), page)
    return Reply(200, page.encode(), {"Content-Type": "text/html; charset=utf-8"})


def take(peer: Peer, body: str) -> Reply:
    """Create a confirmation token from the input.

    The token is in the page's account and in the mode of the page's key.
    """
    entered = json.loads(body)
    if entered["key"] not in KEYS or (entered["account"] or PLATFORM) not in (PLATFORM, *CONNECTED):
        raise Refusal("Invalid API Key provided.", status=401)
    if entered["number"] not in NUMBERS:
        return _json_reply({"error": {"type": "card_error", "message": "Your card number is invalid."}})
    with peer.lock:
        book = peer.book(entered["account"] or PLATFORM, KEYS[entered["key"]])
        token = methods.add_token(book, methods.add(book, NUMBERS[entered["number"]]), {})
    return _json_reply({"confirmationToken": public_fields(token)})


def confirm(peer: Peer, body: str, address: str) -> Reply:
    """Confirm a PaymentIntent with its client secret. This is possible even after a failed attempt.

    (Reference: Stripe.js, `confirmPayment`)
    """
    entered = json.loads(body)
    with peer.lock:
        for book in each_book(peer):
            for intent in book.all("payment_intent"):
                if (
                    intent["client_secret"] == entered["client_secret"]
                    and KEYS[entered["key"]] == book.livemode
                ):
                    method = methods.add(book, NUMBERS[entered["number"]])["id"]
                    parameters = {"payment_method": method, "return_url": entered["return_url"]}
                    book.request_ids = {
                        name: value for name, value in book.request_ids.items() if name == "version"
                    }
                    confirmed = intents.confirm(Call(book, parameters, intent["id"], address))
                    return _json_reply({"paymentIntent": public_fields(confirmed)})
    raise Refusal("No such payment_intent.", "resource_missing", status=404)


def _json_reply(content: object) -> Reply:
    return Reply(200, json.dumps(content).encode())
