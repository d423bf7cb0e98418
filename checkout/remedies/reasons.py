"""Sentences that explain a provider's reason codes for refusals, and whether the card can still take the money."""

from payments.provider import CARD_CANNOT_TAKE_IT

CLOSED_TEXT = "The card’s account is closed."
TEXT_BY_REASON = {
    "card_account_closed": CLOSED_TEXT,
    "account_closed": CLOSED_TEXT,
    "card_closed": CLOSED_TEXT,
    "expired_or_canceled_card": "The card has expired or was cancelled.",
    "lost_or_stolen_card": "The card was reported lost or stolen.",
    "refused": "",
    "new_key": "It did not arrive at the provider, so another request replaced it.",
    "withdrawn": "It was planned, and is not sent any more.",
}


def reason_text(reason: str | None) -> str:
    """Return the sentence for a provider's reason code, or "" if there is no code or no sentence for it."""
    if not reason or reason in TEXT_BY_REASON:
        return TEXT_BY_REASON[reason] if reason else ""
    return reason.replace("_", " ").capitalize() + "."


def can_succeed_again(reason: str | None) -> bool:
    """Return whether another refund can succeed after a refused one, because the card can still take the money."""
    return reason not in CARD_CANNOT_TAKE_IT
