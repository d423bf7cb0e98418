"""Disputes: opened by a card or a switch, answered, closed. (Reference: "Disputes"; "Testing", disputes)"""

from tests.payments.stripe_peer.books import Book, Call, Thing, merge_metadata
from tests.payments.stripe_peer.errors import Refusal
from tests.payments.stripe_peer.resources import charges

ANSWER_SECONDS = 9 * 86400
FEE = 1500
_DECIDES = {"winning_evidence": "won", "losing_evidence": "lost"}  # Testing: "Evidence"


def open_one(book: Book, charge: Thing, reason: str) -> Thing:
    """Open one; its money and a fee are withdrawn at once, but not those of an inquiry (`warning`)."""
    is_inquiry = reason == "warning"
    details = {"due_by": book.peer.now() + ANSWER_SECONDS, "has_evidence": False, "past_due": False}
    dispute = book.make(
        "dispute",
        amount=charge["amount_captured"],
        **{name: charge[name] for name in ("currency", "payment_intent")},
        balance_transactions=[],
        charge=charge["id"],
        evidence={},
        evidence_details=details | {"submission_count": 0},
        is_charge_refundable=is_inquiry,
        metadata={},
        reason="general" if is_inquiry else reason,
        status="warning_needs_response" if is_inquiry else "needs_response",
    )
    charge |= {"disputed": True, "_inquiry": is_inquiry}
    book.emit("charge.dispute.created", dispute)
    if not is_inquiry:
        _move(book, dispute, -dispute["amount"], FEE)
        book.emit("charge.dispute.funds_withdrawn", dispute)
    return dispute


def _move(book: Book, dispute: Thing, amount: int, fee: int) -> None:
    entry = charges.add_transaction(book, dispute, amount, type="adjustment", fee=fee)
    dispute["balance_transactions"].append(entry)


def update(call: Call) -> Thing:
    """Take evidence, and send it where that is asked. (Reference: "Update a dispute")"""
    dispute, given = _open(call), call.given
    dispute["evidence"] |= given.get("evidence") or {}
    dispute["metadata"] = merge_metadata(dispute["metadata"], given.get("metadata"))
    dispute["evidence_details"]["has_evidence"] = bool(dispute["evidence"])
    call.book.emit("charge.dispute.updated", dispute)
    if given.get("submit", True) and "evidence" in given:
        dispute["evidence_details"]["submission_count"] += 1
        dispute["status"] = dispute["status"].replace("needs_response", "under_review")
        if ends := _DECIDES.get(dispute["evidence"].get("uncategorized_text", "")):
            end(call.book, dispute, ends)
    return dispute


def close(call: Call) -> Thing:
    """Accept that it is lost. (Reference: "Close a dispute")"""
    dispute = _open(call)
    end(call.book, dispute, "lost")
    return dispute


def end(book: Book, dispute: Thing, status: str) -> None:
    """Decide it; what was withdrawn from a winner comes back."""
    is_inquiry = dispute["status"].startswith("warning")
    dispute["status"] = "warning_closed" if is_inquiry else status
    book.emit("charge.dispute.closed", dispute)
    if status == "won" and not is_inquiry:
        _move(book, dispute, dispute["amount"], 0)
        book.emit("charge.dispute.funds_reinstated", dispute)


def _open(call: Call) -> Thing:
    dispute = call.book.find("dispute", call.id, "dispute")
    if not dispute["status"].endswith("needs_response"):
        raise Refusal("This dispute is already closed or under review.", param="dispute")
    return dispute
