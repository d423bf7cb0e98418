"""A dispute as the merchant sees it: the payer's reason, the deadline for an answer, and its status."""

from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from checkout.models import Checkout
from checkout.states import Status
from config.lib import clock
from payments import money
from payments.disputes import payer_of, quoted_reason, reason_in_words
from payments.models import Dispute
from portal import badges
from portal.badges import Badge
from portal.orders.entries import card_of

MONEY_PLACES = {
    Dispute.Status.OPEN: "At the {payer}’s bank, until it decides",
    Dispute.Status.WON: "With you",
    Dispute.Status.LOST: "Back with the {payer}",
}
ORDER_BADGES = {
    Dispute.Status.OPEN: Badge("held", "alert", "Disputed"),
    Dispute.Status.WON: Badge("done", "check", "Dispute won"),
    Dispute.Status.LOST: Badge("void", "slash", "Dispute lost"),
}


def dispute_title(row: Dispute) -> str:
    """Return a title for the order's page, such as "A mate disputes £20.00"."""
    payer = "A mate" if payer_of(row.payment) == "mate" else "The customer"
    return f"{payer} disputes {money.display(row.amount, row.payment.currency)}"


def dispute_context(row: Dispute) -> dict[str, Any]:
    """Return the template context for a dispute. It does not name the mate who disputes a share."""
    payer = payer_of(row.payment)
    send_by = row.respond_by if row.respond_by and row.respond_by > clock.now() else None
    days_left = (timezone.localdate(send_by) - timezone.localdate()).days if send_by else None
    return {
        "dispute": row,
        "badge": badges.DISPUTE[row.status],
        "on_the_order": ORDER_BADGES[Dispute.Status(row.status)],
        "amount": money.display(row.amount, row.payment.currency),
        "payer": payer,
        "title": dispute_title(row),
        "card": card_of(row.payment),
        "reason": reason_in_words(row),
        "quoted_reason": quoted_reason(row),
        "where": MONEY_PLACES[Dispute.Status(row.status)].format(payer=payer),
        "send_by": send_by,
        "days_left": days_left or None,
    }


def is_fully_disputed(rows: Sequence[Dispute], checkout: Checkout) -> bool:
    """Return whether the order is captured, and its only dispute is open and for the whole amount."""
    is_single = checkout.status == Status.CAPTURED and len(rows) == 1
    return is_single and rows[0].status == Dispute.Status.OPEN and rows[0].amount == checkout.amount
