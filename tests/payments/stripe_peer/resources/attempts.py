"""Attempts to pay a PaymentIntent. The outcome is declined, challenged, held or paid.

(Documentation: "How PaymentIntents work")
"""

from typing import Any

from tests.payments.stripe_peer import errors
from tests.payments.stripe_peer.books import Book, Thing
from tests.payments.stripe_peer.errors import Refusal
from tests.payments.stripe_peer.resources import cards, charges, disputes, methods

_PREFIX = "payment_intent."


def attempt(book: Book, intent: Thing, *, off_session: bool, address: str) -> None:
    """Try to pay with the intent's payment method. If it is declined, record that on the intent and raise Refusal."""
    card = methods.card_of(book, intent["payment_method"])
    if _is_challenged(intent, card):
        if off_session:
            _fail(book, intent, card, code="authentication_required", decline_code="authentication_required")
        _challenge(book, intent, address)
    else:
        pay(book, intent)


def _is_challenged(intent: Thing, card: cards.Card) -> bool:
    options = intent["payment_method_options"].get("card", {})
    is_asked = options.get("request_three_d_secure") in ("any", "challenge")
    return card.challenge == cards.Challenge.REQUIRED or (
        card.challenge == cards.Challenge.OPTIONAL and is_asked
    )


def _challenge(book: Book, intent: Thing, address: str) -> None:
    """Send the payer to the bank's page. (Reference: PaymentIntent, `next_action.redirect_to_url`)

    If the request has no return address, the action is `use_stripe_sdk`. Only Stripe's script can then show the
    page.
    """
    action: Thing = {"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect"}}
    if intent["_return_url"]:
        page = f"{address}/_peer/3d_secure/{intent['id']}?client_secret={intent['client_secret']}"
        redirect = {"return_url": intent["_return_url"], "url": page}
        action = {"type": "redirect_to_url", "redirect_to_url": redirect}
    intent |= {"status": "requires_action", "next_action": action}
    book.emit(f"{_PREFIX}requires_action", intent)


def pay(book: Book, intent: Thing) -> None:
    """Hold or capture the intent's money. Raise Refusal if the card is declined."""
    card = methods.card_of(book, intent["payment_method"])
    if card.code:
        _fail(book, intent, card, code=card.code, decline_code=card.decline_code)
    partial = book.peer.partial.pop(0) if book.peer.partial else intent["amount"]
    charge = charges.create(book, intent, card, authorized=min(partial, intent["amount"]))
    intent |= {"latest_charge": charge["id"], "next_action": None, "last_payment_error": None}
    intent |= {"status": "requires_capture", "amount_capturable": charge["amount"]}
    if intent["capture_method"] == "manual":
        book.emit(f"{_PREFIX}amount_capturable_updated", intent)
    else:
        take(book, intent, charge["amount"])


def take(book: Book, intent: Thing, amount: int) -> None:
    """Capture `amount` of the held money. (Reference: "Capture a PaymentIntent")"""
    charge = book.find("charge", intent["latest_charge"])
    charges.capture(book, charge, amount)
    if intent["capture_method"] == "manual":
        book.emit("charge.captured", charge)
    intent |= {"status": "succeeded", "amount_received": amount, "amount_capturable": 0}
    book.emit(f"{_PREFIX}succeeded", intent)
    if reason := methods.card_of(book, intent["payment_method"]).dispute:
        disputes.open_one(book, charge, reason)


def _fail(book: Book, intent: Thing, card: cards.Card, **codes: str) -> None:
    """Decline the card with status 402. The intent then requires another payment method.

    (Reference: "Errors", card errors)
    """
    charge = charges.create(book, intent, card, authorized=None)
    message = cards.MESSAGES.get(
        codes["code"], "Your card was declined. This transaction requires authentication."
    )
    failure: dict[str, Any] = {"charge": charge["id"]}
    failure |= {"decline_code": codes["decline_code"]} if codes["decline_code"] else {}
    refusal = Refusal(message, codes["code"], status=402, type=errors.CARD, extra_fields=failure)
    _back(book, intent, refusal, latest_charge=charge["id"])
    refusal.extra_fields["payment_intent"] = intent
    raise refusal


def refuse(book: Book, intent: Thing) -> None:
    """Record that the payer failed 3-D Secure. (Error code `payment_intent_authentication_failure`)"""
    message = "The provided PaymentMethod has failed authentication."
    _back(book, intent, Refusal(message, "payment_intent_authentication_failure"))


def _back(book: Book, intent: Thing, refusal: Refusal, **fields: Any) -> None:
    method = book.find("payment_method", intent["payment_method"])
    error = refusal.as_json | {"payment_method": method}
    intent |= {"status": "requires_payment_method", "payment_method": None, "next_action": None} | fields
    intent["last_payment_error"] = error
    book.emit(f"{_PREFIX}payment_failed", intent)
