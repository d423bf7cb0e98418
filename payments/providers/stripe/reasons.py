"""Translates Stripe's decline codes into the reasons of this service. Stripe's documentation: "Decline codes"."""

from typing import Any

# The reasons that a payer may see.
_REASON_BY_CODE = {
    "insufficient_funds": "insufficient_funds",
    "withdrawal_count_limit_exceeded": "insufficient_funds",
    "card_velocity_exceeded": "insufficient_funds",
    "expired_card": "expired_card",
    "authentication_required": "challenge_failed",
    "payment_intent_authentication_failure": "challenge_failed",
}
# With these codes, the card might belong to a different person. Stripe forbids showing these reasons to the payer.
_HIDDEN_CODES = frozenset(
    (
        *("fraudulent", "generic_decline", "highest_risk_level", "lost_card", "merchant_blacklist"),
        *("pickup_card", "restricted_card", "security_violation", "stolen_card"),
    )
)
DECLINED = "card_declined"


def decline_reason(code: str, decline_code: str) -> str:
    """Return our reason for a decline. A code that is not in the tables is returned unchanged."""
    specific = decline_code or code
    if specific in _HIDDEN_CODES:
        return DECLINED
    return _REASON_BY_CODE.get(specific) or _REASON_BY_CODE.get(code) or specific or DECLINED


def error_codes(error: Any) -> tuple[str, str]:
    """Return the code and the bank's decline code in Stripe's error object. A missing code is ""."""
    return (getattr(error, "code", None) or "", getattr(error, "decline_code", None) or "")
