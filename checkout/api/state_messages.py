"""Error messages for calls that a checkout's status does not allow. Each message says what to do next."""

from checkout.states import Status

_NEVER_TAKEN = "This checkout was cancelled, or its hold has ended. No money was taken."
_NEVER_PAID = "This checkout expired or was cancelled before it was paid."
# Messages by error code and by the checkout's status. If a status is missing here, the message in the error table is
# used.
MESSAGES: dict[str, dict[str, str]] = {
    "not_capturable": {
        Status.CREATED: "This checkout is not paid yet. Wait for the event checkout.authorized, then capture it.",
        Status.VOIDED: f"{_NEVER_TAKEN} Do not fulfil the order. Create a new checkout.",
        Status.EXPIRED: f"{_NEVER_PAID} Create a new one.",
        Status.REFUNDING: "This checkout was captured, and a refund is in progress. It cannot be captured again.",
        Status.REFUNDED: "This checkout was captured and refunded. It cannot be captured again.",
    },
    "not_refundable": {
        Status.CREATED: "This checkout is not paid yet, so it cannot be refunded. Cancel it instead.",
        Status.AUTHORIZED: "This checkout is held and not captured, so it cannot be refunded. Cancel it instead.",
        Status.VOIDED: f"{_NEVER_TAKEN} It needs no refund.",
        Status.EXPIRED: f"{_NEVER_PAID} It needs no refund.",
        Status.REFUNDING: "A refund of this checkout is in progress. Read the checkout until its status is refunded.",
        Status.REFUNDED: "This checkout is already refunded. It needs no other refund.",
    },
    "not_payable": {
        Status.AUTHORIZED: "This checkout is already paid, and its card is held. Capture or cancel it.",
        Status.CAPTURED: "This checkout is already paid and captured. Create a new one for another payment.",
        Status.REFUNDING: "This checkout was paid, and a refund is in progress. Create a new one for another payment.",
        Status.REFUNDED: "This checkout was paid and refunded. Create a new one for another payment.",
        Status.VOIDED: f"{_NEVER_TAKEN} Create a new checkout.",
        Status.EXPIRED: f"{_NEVER_PAID} Create a new one.",
    },
}


def message_for(code: str, status: str) -> str:
    """Return the message for an error code if the checkout has this status.

    Return "" if the message in the error table is suitable. Rule api.conflict.
    """
    return MESSAGES.get(code, {}).get(status, "")
