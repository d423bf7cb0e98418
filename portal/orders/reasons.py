"""The bank's reasons for a refusal in words, and whether the card can still take the money."""

from checkout.remedies.reasons import reason_text
from payments.provider import CARD_CANNOT_TAKE_IT

__all__ = ["can_succeed_again", "reason_text"]


def can_succeed_again(reason: str | None) -> bool:
    """Return whether another refund can succeed after a refused one, because the card can still take the money."""
    return reason not in CARD_CANNOT_TAKE_IT
