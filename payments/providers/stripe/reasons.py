"""Why a card was declined, in the words of this service. Stripe's documentation: "Decline codes"."""

from typing import Any

# What a payer may be told.
_KNOWN = {
    "insufficient_funds": "insufficient_funds",
    "withdrawal_count_limit_exceeded": "insufficient_funds",
    "card_velocity_exceeded": "insufficient_funds",
    "expired_card": "expired_card",
    "authentication_required": "challenge_failed",
    "payment_intent_authentication_failure": "challenge_failed",
}
# The card may be another's: Stripe says that nobody is to be told.
_KEPT_SECRET = frozenset(
    (
        *("fraudulent", "generic_decline", "highest_risk_level", "lost_card", "merchant_blacklist"),
        *("pickup_card", "restricted_card", "security_violation", "stolen_card"),
    )
)
DECLINED = "card_declined"


def of_decline(code: str, decline_code: str) -> str:
    """Return the reason for a decline; the bank's own code if it is neither known here nor to be kept secret."""
    said = decline_code or code
    if said in _KEPT_SECRET:
        return DECLINED
    return _KNOWN.get(said) or _KNOWN.get(code) or said or DECLINED


def named_in(said: Any) -> tuple[str, str]:
    """Return the code and, of a decline, the bank's own code in Stripe's error object, each "" without one."""
    return (getattr(said, "code", None) or "", getattr(said, "decline_code", None) or "")
