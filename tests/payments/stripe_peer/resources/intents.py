"""Creates, confirms, captures and cancels PaymentIntents.

(Reference: "PaymentIntents"; documentation: "How PaymentIntents work")
"""

import secrets

from tests.payments.stripe_peer.books import Book, Call, Thing, merge_metadata
from tests.payments.stripe_peer.errors import Refusal, unexpected_state
from tests.payments.stripe_peer.resources import amounts, attempts, charges, methods

_OPEN = ("requires_payment_method", "requires_confirmation", "requires_action")
_CONFIRMING = ("return_url", "off_session", "confirmation_token", "mandate_data", "error_on_requires_action")
_KEPT = (
    "description",
    "receipt_email",
    "statement_descriptor_suffix",
    "transfer_group",
    "setup_future_usage",
)

_EMPTY = (
    "canceled_at",
    "cancellation_reason",
    "customer",
    "last_payment_error",
    "latest_charge",
    "next_action",
)


def create(call: Call) -> Thing:
    """Create an intent. If the request has `confirm`, confirm it too. (Reference: "Create a PaymentIntent")"""
    parameters, book = call.parameters, call.book
    amounts.check(parameters["amount"], parameters["currency"])
    for name in _CONFIRMING:
        if name in parameters and not parameters.get("confirm"):
            message = f"The parameter `{name}` cannot be passed when creating a PaymentIntent unless `confirm` is set"
            raise Refusal(f"{message} to true.", param=name)
    method = (
        methods.take(book, parameters["payment_method"])["id"] if "payment_method" in parameters else None
    )
    intent = _new(book, parameters)
    intent |= {"payment_method": method} | ({"status": "requires_confirmation"} if method else {})
    book.emit("payment_intent.created", intent)
    return _confirm(call, intent) if parameters.get("confirm") else intent


def _new(book: Book, parameters: Thing) -> Thing:
    allowed = parameters.get("allowed_payment_method_types")
    automatic = parameters.get("automatic_payment_methods", {"enabled": allowed != ["card"]})
    intent = book.make(
        "payment_intent",
        **dict.fromkeys(_EMPTY),
        **{name: parameters.get(name) for name in _KEPT},
        **{name: parameters[name] for name in ("amount", "currency")},
        **{"amount_capturable": 0, "amount_received": 0, "status": "requires_payment_method"},
        automatic_payment_methods={"allow_redirects": "always"} | automatic if automatic["enabled"] else None,
        capture_method=parameters.get("capture_method", "automatic_async"),
        confirmation_method=parameters.get("confirmation_method", "automatic"),
        metadata=merge_metadata({}, parameters.get("metadata")),
        payment_method_options=parameters.get("payment_method_options", {}),
        allowed_payment_method_types=allowed,
        payment_method_types=["card"],
        _return_url=None,
    )
    intent["client_secret"] = f"{intent['id']}_secret_{secrets.token_hex(12)}"
    return intent


def update(call: Call) -> Thing:
    """Change an intent that is not paid yet. Its metadata can be changed at any time.

    (Reference: "Update a PaymentIntent")
    """
    intent, parameters = _find(call), dict(call.parameters)
    intent["metadata"] = merge_metadata(intent["metadata"], parameters.pop("metadata", None))
    parameters.pop("expand", None)
    if parameters and intent["status"] not in _OPEN:
        message = (
            f"This PaymentIntent's {next(iter(parameters))} could not be updated because it has a status of "
        )
        raise unexpected_state(f"{message}{intent['status']}.", payment_intent=intent)
    if {"amount", "currency"} & parameters.keys():
        changed = intent | parameters
        amounts.check(changed["amount"], changed["currency"])
    if "payment_method" in parameters:
        parameters["payment_method"] = methods.take(call.book, parameters["payment_method"])["id"]
        intent |= {"status": "requires_confirmation", "next_action": None}
    intent |= {name: value for name, value in parameters.items() if name in intent}
    return intent


def confirm(call: Call) -> Thing:
    """Confirm an intent from the server. (Reference: "Confirm a PaymentIntent")"""
    return _confirm(call, _find(call))


def _confirm(call: Call, intent: Thing) -> Thing:
    parameters, book = call.parameters, call.book
    _refuse_confirmation(intent, parameters)
    used: Thing = {}
    if "confirmation_token" in parameters:
        used = methods.use_token(book, parameters["confirmation_token"], intent["id"])
    elif "payment_method" in parameters:
        used = {"payment_method": methods.take(book, parameters["payment_method"])["id"]}
    method = used.get("payment_method") or intent["payment_method"]
    if method is None:
        message = "You cannot confirm this PaymentIntent because it's missing a payment method."
        raise unexpected_state(message, payment_intent=intent)
    back = parameters.get("return_url") or used.get("return_url")
    automatic = intent["automatic_payment_methods"]
    if automatic and automatic["allow_redirects"] == "always" and not back:
        message = "This PaymentIntent may use payment methods that redirect: you must provide a `return_url`."
        raise Refusal(message, param="return_url", extra_fields={"payment_intent": intent})
    intent["payment_method_options"] |= parameters.get("payment_method_options", {})
    intent |= {"payment_method": method, "_return_url": back, "next_action": None}
    attempts.attempt(book, intent, off_session=bool(parameters.get("off_session")), address=call.address)
    return intent


def _refuse_confirmation(intent: Thing, parameters: Thing) -> None:
    if intent["status"] not in _OPEN:
        why = "it has already succeeded after being previously confirmed"
        why = why if intent["status"] == "succeeded" else f"it has a status of {intent['status']}"
        message = f"You cannot confirm this PaymentIntent because {why}."
        raise unexpected_state(message, payment_intent=intent)
    if {"confirmation_token", "payment_method"} <= parameters.keys():
        message = "You may only specify one of these parameters: confirmation_token, payment_method."
        raise Refusal(message, param="confirmation_token")


def capture(call: Call) -> Thing:
    """Capture a hold, in whole or in part, but only once. (Reference: "Capture a PaymentIntent")"""
    intent = _find(call)
    if intent["status"] == "succeeded":
        message = "This PaymentIntent could not be captured because it has already been captured."
        raise unexpected_state(message, payment_intent=intent)
    if intent["status"] != "requires_capture":
        message = f"This PaymentIntent could not be captured because it has a status of {intent['status']}."
        raise unexpected_state(message, payment_intent=intent)
    if call.parameters.get("final_capture") is False:
        raise Refusal("Multicapture is not available to this account.", param="final_capture")
    held: int = intent["amount_capturable"]
    amount: int = call.parameters.get("amount_to_capture", held)
    if not 1 <= amount <= held:
        message = f"The amount to capture has to be from 1 to {held}, the amount capturable."
        code = "amount_too_large" if amount > 0 else "parameter_invalid_integer"
        raise Refusal(message, code, "amount_to_capture", extra_fields={"payment_intent": intent})
    attempts.take(call.book, intent, amount)
    return intent


def cancel(call: Call) -> Thing:
    """Cancel an intent that is not paid, and release its hold. (Reference: "Cancel a PaymentIntent")"""
    intent = _find(call)
    if intent["status"] not in (*_OPEN, "requires_capture"):
        message = f"You cannot cancel this PaymentIntent because it has a status of {intent['status']}."
        raise unexpected_state(message, payment_intent=intent)
    reason = call.parameters.get("cancellation_reason")
    _end(call.book, intent, reason)
    return intent


def lapse(book: Book) -> None:
    """Release each hold that is seven days old. (Documentation: "Place a hold on a payment method")"""
    for intent in book.all("payment_intent"):
        if intent["status"] == "requires_capture":
            charge = book.find("charge", intent["latest_charge"])
            if charge["created"] + charges.HOLD_SECONDS <= book.peer.now():
                _end(book, intent, "expired")


def _end(book: Book, intent: Thing, reason: str | None) -> None:
    if intent["status"] == "requires_capture":
        charge = book.find("charge", intent["latest_charge"])
        charges.release(book, charge, lapses=reason == "expired")
    ended = {"canceled_at": book.peer.now(), "cancellation_reason": reason}
    intent |= {"status": "canceled", "amount_capturable": 0, "next_action": None} | ended
    book.emit("payment_intent.canceled", intent)


def _find(call: Call) -> Thing:
    return call.book.find("payment_intent", call.id, "intent")
