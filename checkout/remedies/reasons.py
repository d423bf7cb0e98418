"""A bank's reasons for a refusal in words, for refunds that a card can no longer take and for all others."""

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
    """Return a provider's reason as a sentence, "" for a reason that has no meaning."""
    if not reason or reason in SAID:
        return SAID[reason] if reason else ""
    return reason.replace("_", " ").capitalize() + "."
