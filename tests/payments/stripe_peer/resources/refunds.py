"""Refunds of charges. A refund settles at once, is pending first, or fails later.

(Reference: "Refunds"; "Testing", refunds)
"""

from tests.payments.stripe_peer.books import Book, Call, Thing, merge_metadata
from tests.payments.stripe_peer.errors import Refusal, unexpected_state
from tests.payments.stripe_peer.resources import charges, disputes, methods

# The reason for a pending refund whose money has not been withdrawn from the balance yet. ("Refunds", pending)
WITHOUT_LINE = ("insufficient_funds",)


def create(call: Call) -> Thing:
    """Refund a charge in whole or in part. (Reference: "Create a refund")"""
    charge = _charge(call)
    amount = _amount(call.book, charge, call.parameters)
    card = methods.card_of(call.book, charge["payment_method"])
    peer = call.peer
    waits = peer.pending.pop(0)["reason"] if peer.pending else card.refund == "is pending" and "processing"
    refund = call.book.make(
        "refund",
        amount=amount,
        **{name: charge[name] for name in ("currency", "payment_intent")},
        **{"charge": charge["id"], "reason": call.parameters.get("reason"), "receipt_number": None},
        metadata=merge_metadata({}, call.parameters.get("metadata")),
        balance_transaction=None,
        destination_details={"type": "card", "card": {"type": "refund"}},
        _fails=card.refund == "fails",
        **({"status": "pending", "pending_reason": waits} if waits else {"status": "succeeded"}),
    )
    if waits not in WITHOUT_LINE:
        _take(call.book, refund)
    _count(charge, amount)
    if charge["refunded"]:
        disputes.close_inquiries(call.book, charge)
    call.book.emit("refund.created", refund)
    call.book.emit("charge.refunded", charge)
    return refund


def _charge(call: Call) -> Thing:
    parameters, book = call.parameters, call.book
    if not {"charge", "payment_intent"} & parameters.keys():
        message = "One of the following params should be provided for this request: payment_intent or charge."
        raise Refusal(message, "parameter_missing")
    if "charge" in parameters:
        charge = book.find("charge", parameters["charge"], "charge")
    else:
        intent = book.find("payment_intent", parameters["payment_intent"], "payment_intent")
        if intent["status"] != "succeeded":
            message = f"This PaymentIntent ({intent['id']}) does not have a successful charge to refund."
            raise unexpected_state(message, payment_intent=intent)
        charge = book.find("charge", intent["latest_charge"])
    if not charge["captured"]:
        raise Refusal(f"Charge {charge['id']} is not captured: cancel its PaymentIntent.", param="charge")
    return charge


def _amount(book: Book, charge: Thing, parameters: Thing) -> int:
    left: int = charge["amount_captured"] - charge["amount_refunded"]
    if any(disputes.stops_refunds(row) for row in book.all("dispute") if row["charge"] == charge["id"]):
        raise Refusal(
            f"Charge {charge['id']} has been charged back; cannot issue a refund.", "charge_disputed"
        )
    if left == 0:
        raise Refusal(f"Charge {charge['id']} has already been refunded.", "charge_already_refunded")
    amount: int = parameters.get("amount", left)
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
    """Change a refund's metadata. (Reference: "Update a refund")"""
    refund = call.book.find("refund", call.id)
    refund["metadata"] = merge_metadata(refund["metadata"], call.parameters.get("metadata"))
    call.book.emit("refund.updated", refund)
    return refund


def settle(book: Book) -> None:
    """Settle each pending refund, or make it fail if refunds to its card fail. Settled refunds to such cards fail too.

    (Testing: "Asynchronous success", "Asynchronous failure")
    """
    for refund in book.all("refund"):
        fails = refund["_fails"]
        if refund["status"] == "pending" or (refund["status"] == "succeeded" and fails):
            end(book, refund, "failed" if fails else "succeeded")


def end(book: Book, refund: Thing, status: str) -> None:
    """End a refund, even one that has succeeded. (Reference: Refund, `failure_balance_transaction`)"""
    before = refund["status"]
    refund["status"] = status
    refund.pop("pending_reason", None)
    if status == "succeeded":
        if refund["balance_transaction"] is None:
            _take(book, refund)
    else:
        refund["failure_reason"] = "merchant_request" if status == "canceled" else "expired_or_canceled_card"
        if refund["balance_transaction"] is not None:
            entry = charges.add_transaction(book, refund, refund["amount"], type="refund_failure")
            refund["failure_balance_transaction"] = entry["id"]
        _count(book.find("charge", refund["charge"]), -refund["amount"])
    for name in ("charge.refund.updated", "refund.updated"):
        book.emit(name, refund, status=before)
    if status == "failed":
        book.emit("refund.failed", refund)


def _take(book: Book, refund: Thing) -> None:
    entry = charges.add_transaction(book, refund, -refund["amount"], type="refund")
    refund["balance_transaction"] = entry["id"]
