"""Disputes. A card or a switch opens a dispute, which can then be answered, decided and appealed.

(Reference: "Disputes"; "Testing", disputes)
"""

from typing import Any

from tests.payments.stripe_peer.books import Book, Call, Thing, merge_metadata
from tests.payments.stripe_peer.errors import Refusal
from tests.payments.stripe_peer.resources import charges

ANSWER_SECONDS = 9 * 86400
FEE = 1500
INQUIRIES = ("warning_needs_response", "warning_under_review")
ENDS = ("won", "lost", "warning_closed", "prevented")
_DECIDES = {"winning_evidence": "won", "losing_evidence": "lost"}  # Testing: "Evidence"


def open_one(book: Book, charge: Thing, reason: str, **differs: Any) -> Thing:
    """Open a dispute. Unless it is an inquiry (`warning`), withdraw its money and a fee at once.

    `differs` can replace the `amount` and the `status`. It can also set `withdraws`: if this is false, no money
    is withdrawn now, but a switch can withdraw it later.
    """
    is_inquiry = reason == "warning"
    details = {"due_by": book.peer.now() + ANSWER_SECONDS, "has_evidence": False, "past_due": False}
    dispute = book.make(
        "dispute",
        amount=differs.get("amount") or charge["amount_captured"],
        **{name: charge[name] for name in ("currency", "payment_intent")},
        balance_transactions=[],
        charge=charge["id"],
        evidence={},
        evidence_details=details | {"submission_count": 0},
        is_charge_refundable=is_inquiry,
        metadata={},
        reason="general" if is_inquiry else reason,
        status=differs.get("status") or ("warning_needs_response" if is_inquiry else "needs_response"),
    )
    charge["disputed"] = True
    book.emit("charge.dispute.created", dispute)
    if differs.get("withdraws", not is_inquiry):
        withdraw(book, dispute)
    return dispute


def withdraw(book: Book, dispute: Thing, amount: int | None = None) -> None:
    """Withdraw the disputed money or a part of it, and a fee. (Event `charge.dispute.funds_withdrawn`)"""
    _move(book, dispute, -(amount or dispute["amount"]), FEE, "dispute")
    dispute["is_charge_refundable"] = False
    book.emit("charge.dispute.funds_withdrawn", dispute)


def reinstate(book: Book, dispute: Thing, amount: int | None = None) -> None:
    """Return the disputed money or a part of it. (Event `charge.dispute.funds_reinstated`)"""
    _move(book, dispute, amount or dispute["amount"], 0, "dispute_reversal")
    book.emit("charge.dispute.funds_reinstated", dispute)


def _move(book: Book, dispute: Thing, amount: int, fee: int, category: str) -> None:
    entry = charges.add_transaction(book, dispute, amount, type="adjustment", fee=fee, category=category)
    dispute["balance_transactions"].append(entry)


def is_withdrawn(dispute: Thing) -> bool:
    """Return whether the payer's bank has withdrawn the disputed money and still has it."""
    lines = dispute["balance_transactions"]
    return sum(-1 if line["amount"] < 0 else 1 for line in lines) < 0


def stops_refunds(dispute: Thing) -> bool:
    """Return whether the dispute prevents refunds of the charge.

    (Error code `charge_disputed`; `is_charge_refundable`)
    """
    is_charged_back = not dispute["status"].startswith("warning") and dispute["status"] not in ENDS
    return is_withdrawn(dispute) or is_charged_back


def update(call: Call) -> Thing:
    """Store evidence. Unless the request has `submit=false`, submit it. (Reference: "Update a dispute")"""
    dispute, parameters = _open(call), call.parameters
    dispute["evidence"] |= parameters.get("evidence") or {}
    dispute["metadata"] = merge_metadata(dispute["metadata"], parameters.get("metadata"))
    dispute["evidence_details"]["has_evidence"] = bool(dispute["evidence"])
    call.book.emit("charge.dispute.updated", dispute)
    if parameters.get("submit", True) and "evidence" in parameters:
        dispute["evidence_details"]["submission_count"] += 1
        dispute["status"] = dispute["status"].replace("needs_response", "under_review")
        if ends := _DECIDES.get(dispute["evidence"].get("uncategorized_text", "")):
            end(call.book, dispute, ends)
    return dispute


def close(call: Call) -> Thing:
    """Accept the dispute as lost. (Reference: "Close a dispute")"""
    dispute = _open(call)
    end(call.book, dispute, "lost")
    return dispute


def end(book: Book, dispute: Thing, status: str) -> None:
    """Decide a dispute, and move the money to the winner. This can reverse an earlier decision.

    If the dispute is an inquiry, it is closed and no money moves.
    """
    is_inquiry = dispute["status"].startswith("warning")
    dispute["status"] = "warning_closed" if is_inquiry else status
    book.emit("charge.dispute.closed", dispute)
    if status == "won" and is_withdrawn(dispute):
        reinstate(book, dispute)
    elif status == "lost" and not is_inquiry and not is_withdrawn(dispute):
        withdraw(book, dispute)


def close_inquiries(book: Book, charge: Thing) -> None:
    """Close the inquiries about a charge that was refunded in full.

    (Documentation: "Disputes", inquiries)
    """
    for dispute in book.all("dispute"):
        if dispute["charge"] == charge["id"] and dispute["status"] in INQUIRIES:
            end(book, dispute, "warning_closed")


def go_on(book: Book, dispute: Thing, status: str) -> None:
    """Set a status that is not a decision, such as an appeal or the review of an inquiry."""
    dispute["status"] = status
    book.emit("charge.dispute.updated", dispute)


def _open(call: Call) -> Thing:
    dispute = call.book.find("dispute", call.id, "dispute")
    if not dispute["status"].endswith("needs_response"):
        raise Refusal("This dispute is already closed or under review.", param="dispute")
    return dispute
