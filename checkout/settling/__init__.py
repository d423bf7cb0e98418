"""Compares the amount that each card of an order has paid with its target, and plans refunds for the difference."""

from checkout.settling.cards import (
    can_refund_to_lead,
    has_unrefunded_amount,
    is_refunded_by_others,
    read_accounts_unlocked,
    returned_refund_on,
    with_needs_accounts,
)
from checkout.settling.settle import FINISH_OPERATIONS, defer_settling, settle

__all__ = [
    "FINISH_OPERATIONS",
    "can_refund_to_lead",
    "defer_settling",
    "has_unrefunded_amount",
    "is_refunded_by_others",
    "read_accounts_unlocked",
    "returned_refund_on",
    "settle",
    "with_needs_accounts",
]
