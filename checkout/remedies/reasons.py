"""Sentences for the reason codes with which a provider refuses an operation."""

CLOSED = "The card’s account is closed."
SAID = {
    "card_account_closed": CLOSED,
    "account_closed": CLOSED,
    "card_closed": CLOSED,
    "expired_or_canceled_card": "The card has expired or was cancelled.",
    "lost_or_stolen_card": "The card was reported lost or stolen.",
    "refused": "",
}


def said(reason: str | None) -> str:
    """Return a provider's reason code as a sentence, or "" for a missing code or a code without a meaning."""
    if not reason or reason in SAID:
        return SAID[reason] if reason else ""
    return reason.replace("_", " ").capitalize() + "."
