"""Stripe's test payment methods and their behaviour. (Documentation: "Testing", /testing)"""

from dataclasses import dataclass
from enum import StrEnum


class Challenge(StrEnum):
    """Which payments with this card require 3-D Secure."""

    NEVER = "never"
    OPTIONAL = "optional"  # only if the merchant requests 3-D Secure
    REQUIRED = "required"


@dataclass(frozen=True)
class Card:
    last4: str
    brand: str = "visa"
    code: str = ""  # the error code if the card is declined
    decline_code: str = ""
    challenge: Challenge = Challenge.NEVER
    refund: str = "succeeds"  # or "fails" or "is pending"
    dispute: str = ""  # the reason for the dispute that the card causes; "warning" causes an inquiry
    country: str = "US"


_DECLINED = "card_declined"
CARDS = {
    "pm_card_visa": Card("4242"),
    "pm_card_mastercard": Card("4444", "mastercard"),
    "pm_card_amex": Card("8431", "amex"),
    "pm_card_de": Card("0016", country="DE"),
    "pm_card_chargeDeclined": Card("0002", code=_DECLINED, decline_code="generic_decline"),
    "pm_card_visa_chargeDeclined": Card("0002", code=_DECLINED, decline_code="generic_decline"),
    "pm_card_chargeDeclinedInsufficientFunds": Card(
        "9995", code=_DECLINED, decline_code="insufficient_funds"
    ),
    "pm_card_visa_chargeDeclinedInsufficientFunds": Card(
        "9995", code=_DECLINED, decline_code="insufficient_funds"
    ),
    "pm_card_visa_chargeDeclinedLostCard": Card("9987", code=_DECLINED, decline_code="lost_card"),
    "pm_card_visa_chargeDeclinedStolenCard": Card("9979", code=_DECLINED, decline_code="stolen_card"),
    "pm_card_chargeDeclinedFraudulent": Card("0019", code=_DECLINED, decline_code="fraudulent"),
    "pm_card_chargeDeclinedExpiredCard": Card("0069", code="expired_card"),
    "pm_card_chargeDeclinedIncorrectCvc": Card("0127", code="incorrect_cvc"),
    "pm_card_chargeDeclinedProcessingError": Card("0119", code="processing_error"),
    "pm_card_visa_chargeDeclinedVelocityLimitExceeded": Card(
        "6975", code=_DECLINED, decline_code="card_velocity_exceeded"
    ),
    "pm_card_threeDSecure2Required": Card("3220", challenge=Challenge.REQUIRED),
    "pm_card_threeDSecureRequired": Card("3220", challenge=Challenge.REQUIRED),
    "pm_card_authenticationRequired": Card("3184", challenge=Challenge.REQUIRED),
    "pm_card_threeDSecureOptional": Card("3055", challenge=Challenge.OPTIONAL),
    "pm_card_threeDSecureRequiredChargeDeclined": Card(
        "1629", code=_DECLINED, decline_code="generic_decline", challenge=Challenge.REQUIRED
    ),
    "pm_card_refundFail": Card("5126", refund="fails"),
    "pm_card_pendingRefund": Card("7726", refund="is pending"),
    "pm_card_createDispute": Card("0259", dispute="fraudulent"),
    "pm_card_createDisputeProductNotReceived": Card("2685", dispute="product_not_received"),
    "pm_card_createDisputeInquiry": Card("1976", dispute="warning"),
}
TOKENS = {"tok_visa": "pm_card_visa", "tok_mastercard": "pm_card_mastercard", "tok_amex": "pm_card_amex"}
MESSAGES = {
    _DECLINED: "Your card was declined.",
    "expired_card": "Your card has expired.",
    "incorrect_cvc": "Your card's security code is incorrect.",
    "processing_error": "An error occurred while processing your card. Try again in a little bit.",
}
