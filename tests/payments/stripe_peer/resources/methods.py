"""Creates payment methods and confirmation tokens, as Stripe's own card fields do.

(Reference: "PaymentMethods")
"""

from tests.payments.stripe_peer import errors
from tests.payments.stripe_peer.books import Book, Call, Thing
from tests.payments.stripe_peer.errors import Refusal
from tests.payments.stripe_peer.resources import cards

TOKEN_SECONDS = 12 * 3600


def card_of(book: Book, method: str) -> cards.Card:
    """Return the test card behind a payment method, which decides how the payment method behaves."""
    return cards.CARDS[book.cards[method]]


def create(call: Call) -> Thing:
    """Create a payment method from a test token, or refuse a card number.

    (Reference: "Create a PaymentMethod")
    """
    if call.parameters.get("type") != "card":
        raise Refusal("The peer knows payment methods of the type card only.", param="type")
    card = call.parameters.get("card", {})
    if "number" in card:
        raise Refusal(
            "Sending credit card numbers directly to the Stripe API is generally unsafe.",
            type=errors.CARD,
            status=402,
        )
    if card.get("token") not in cards.TOKENS:
        raise errors.missing("token", str(card.get("token")), "card[token]")
    return take(call.book, cards.TOKENS[card["token"]], metadata=call.parameters.get("metadata", {}))


def take(
    book: Book, method_id: str, *, param: str = "payment_method", metadata: Thing | None = None
) -> Thing:
    """Return the payment method with this id.

    In test mode, the id can also be the name of one of Stripe's test methods. In this case, create the
    payment method.
    """
    if method_id not in cards.CARDS:
        return book.find("payment_method", method_id, param)
    if book.livemode:
        raise errors.missing("PaymentMethod", method_id, param)
    return add(book, method_id, metadata)


def add(book: Book, name: str, metadata: Thing | None = None) -> Thing:
    """Create a payment method from a test card, in any mode."""
    details: Thing = {
        "customer": None,
        "billing_details": {"email": None, "name": None, "phone": None, "address": None},
    }
    details |= {"type": "card", "allow_redisplay": "unspecified", "metadata": metadata or {}}
    method = book.make("payment_method", card=shown_card(cards.CARDS[name]), **details)
    book.cards[method["id"]] = name
    return method


def shown_card(card: cards.Card) -> Thing:
    return {
        "brand": card.brand,
        "country": card.country,
        "exp_month": 12,
        "exp_year": 2040,
        "fingerprint": f"peer{card.last4}",
        "funding": "credit",
        "last4": card.last4,
        "three_d_secure_usage": {"supported": True},
        "wallet": None,
    }


def create_token(call: Call) -> Thing:
    """Create a confirmation token, as Stripe's test helper does.

    (Reference: "Create a test Confirmation Token")
    """
    if call.book.livemode:
        raise Refusal("This API call cannot be made with a live API key.", status=403)
    method_id = call.parameters.get("payment_method")
    if not method_id:
        raise Refusal("Missing required param: payment_method.", "parameter_missing", "payment_method")
    return add_token(call.book, take(call.book, method_id), call.parameters)


def add_token(book: Book, method: Thing, fields: Thing) -> Thing:
    """Create a confirmation token, which is valid for twelve hours and for one intent.

    (Reference: "Confirmation Token")
    """
    preview = {name: method[name] for name in ("type", "card", "billing_details")}
    return book.make(
        "confirmation_token",
        expires_at=book.peer.now() + TOKEN_SECONDS,
        payment_intent=None,
        payment_method_preview=preview,
        return_url=fields.get("return_url"),
        setup_future_usage=fields.get("setup_future_usage"),
        use_stripe_sdk=False,
        _method=method["id"],
    )


def use_token(book: Book, token_id: str, intent: str) -> Thing:
    """Use up a token for an intent. Return the token's payment method and its return address."""
    token = book.find("confirmation_token", token_id, "confirmation_token")
    if token["payment_intent"] not in (None, intent):
        raise Refusal("This ConfirmationToken has already been used.", param="confirmation_token")
    if token["expires_at"] <= book.peer.now():
        raise Refusal("This ConfirmationToken has expired.", param="confirmation_token")
    token["payment_intent"] = intent
    return {"payment_method": token["_method"], "return_url": token["return_url"]}
