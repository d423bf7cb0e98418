"""Refunds: at once, pending, or failed afterwards. (Reference: "Refunds"; "Testing", refunds)"""

from tests.payments.stripe_peer.books import Book, Call, Thing, merge_metadata
from tests.payments.stripe_peer.errors import Refusal, unexpected_state
from tests.payments.stripe_peer.resources import charges, methods


def create(call: Call) -> Thing:
    """Give money of a charge back, whole or in part. (Reference: "Create a refund")"""
    charge = _charge(call)
    amount = _amount(charge, call.given)
    card = methods.card_of(call.book, charge["payment_method"])
    refund = call.book.make(
        "refund",
        amount=amount,
        **{name: charge[name] for name in ("currency", "payment_intent")},
        **{"charge": charge["id"], "reason": call.given.get("reason"), "receipt_number": None},
        metadata=merge_metadata({}, call.given.get("metadata")),
        status="pending" if card.refund == "is pending" else "succeeded",
        destination_details={"type": "card", "card": {"type": "refund"}},
        _fails=card.refund == "fails",
    )
    entry = charges.add_transaction(call.book, refund, -amount, type="refund")
    refund["balance_transaction"] = entry["id"]
    _count(charge, amount)
    call.book.emit("refund.created", refund)
    call.book.emit("charge.refunded", charge)
    return refund


def _charge(call: Call) -> Thing:
    given, book = call.given, call.book
    if not {"charge", "payment_intent"} & given.keys():
        message = "One of the following params should be provided for this request: payment_intent or charge."
        raise Refusal(message, "parameter_missing")
    if "charge" in given:
        charge = book.find("charge", given["charge"], "charge")
    else:
        intent = book.find("payment_intent", given["payment_intent"], "payment_intent")
        if intent["status"] != "succeeded":
            message = f"This PaymentIntent ({intent['id']}) does not have a successful charge to refund."
            raise unexpected_state(message, payment_intent=intent)
        charge = book.find("charge", intent["latest_charge"])
    if not charge["captured"]:
        raise Refusal(f"Charge {charge['id']} is not captured: cancel its PaymentIntent.", param="charge")
    return charge


def _amount(charge: Thing, given: Thing) -> int:
    left: int = charge["amount_captured"] - charge["amount_refunded"]
    if charge["disputed"] and not charge.get("_inquiry"):
        raise Refusal(
            f"Charge {charge['id']} has been charged back; cannot issue a refund.", "charge_disputed"
        )
    if left == 0:
        raise Refusal(f"Charge {charge['id']} has already been refunded.", "charge_already_refunded")
    amount: int = given.get("amount", left)
    if amount < 1:
        raise Refusal("This value must be greater than or equal to 1.", "parameter_invalid_integer", "amount")
    if amount > left:
        message = f"Refund amount ({amount}) is greater than unrefunded amount on charge ({left})"
        raise Refusal(message, param="amount")
    return amount


def _count(charge: Thing, amount: int) -> None:
    refunded = charge["amount_refunded"] + amount
    charge |= {"amount_refunded": refunded, "refunded": refunded == charge["amount_captured"]}


def update(call: Call) -> Thing:
    """Change its metadata. (Reference: "Update a refund")"""
    refund = call.book.find("refund", call.id)
    refund["metadata"] = merge_metadata(refund["metadata"], call.given.get("metadata"))
    call.book.emit("refund.updated", refund)
    return refund


def settle(book: Book) -> None:
    """Later has come: what was pending has succeeded, and a refund that its bank sends back has failed.

    (Testing: "Asynchronous success", "Asynchronous failure"; Reference: Refund, `failure_balance_transaction`)
    """
    for refund in book.all("refund"):
        if refund["status"] == "pending":
            refund["status"] = "succeeded"
            book.emit("refund.updated", refund, status="pending")
        elif refund.pop("_fails", False):
            _fail(book, refund)


def _fail(book: Book, refund: Thing) -> None:
    entry = charges.add_transaction(book, refund, refund["amount"], type="refund_failure")
    failed = {"failure_balance_transaction": entry["id"], "failure_reason": "expired_or_canceled_card"}
    refund |= {"status": "failed"} | failed
    _count(book.find("charge", refund["charge"]), -refund["amount"])
    book.emit("refund.updated", refund, status="succeeded")
    book.emit("refund.failed", refund)
