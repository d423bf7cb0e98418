"""Why the bank refused, in words, and whether the card can still take the money."""

from checkout.remedies.reasons import CLOSED, said
from payments.provider import CARD_CANNOT_TAKE_IT

__all__ = ["CLOSED", "may_pass", "said"]


def may_pass(reason: str | None) -> bool:
    """Whether the same refund may go through when it is sent again: the card can still take it."""
    return reason not in CARD_CANNOT_TAKE_IT
