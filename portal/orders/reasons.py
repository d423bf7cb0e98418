"""The bank's reasons for a refusal, in words, and whether the card can still take the money."""

from checkout.remedies.reasons import CLOSED, said
from payments.provider import CARD_CANNOT_TAKE_IT

__all__ = ["CLOSED", "may_pass", "said"]


def may_pass(reason: str | None) -> bool:
    """Return whether a refused refund can succeed if it is sent again: the card can still take the money."""
    return reason not in CARD_CANNOT_TAKE_IT
