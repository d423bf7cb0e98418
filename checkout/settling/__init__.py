"""Compares what each card of an order has borne with its target, and plans refunds for the difference."""

from checkout.settling.cards import (
    can_take,
    is_anything_borne,
    is_given_back_outside,
    read_accounts_unlocked,
    returned_on,
    with_untold,
)
from checkout.settling.settle import FINISH_OPERATIONS, settle, settled_later

__all__ = [
    "FINISH_OPERATIONS",
    "can_take",
    "is_anything_borne",
    "is_given_back_outside",
    "read_accounts_unlocked",
    "returned_on",
    "settle",
    "settled_later",
    "with_untold",
]
