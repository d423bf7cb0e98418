"""Shows operators the state of an SMS message, as far as the carrier has confirmed it."""

from django.conf import settings
from django.db import models

from hosted_page.models import SmsMessage


class MessageState(models.TextChoices):
    """The state of a message. If a carrier sends no delivery reports, a delivery is never confirmed."""

    WAITING = "waiting", "Waiting"
    NO_CARRIER = "no_carrier", "Not texted"
    HANDED_OVER = "handed_over", "Handed to the carrier"
    DELIVERED = "delivered", "Delivered"
    UNDELIVERED = "undelivered", "Undelivered"
    REFUSED = "refused", "Refused"
    IN_DOUBT = "in_doubt", "In doubt"
    NOT_SENT = "not_sent", "Not sent"


def state_of(message: SmsMessage) -> MessageState:
    """Return the state of a message. The sandbox has no carrier, so its messages are never handed over."""
    if message.receipt:
        return MessageState(message.receipt)
    if message.refusal:
        return MessageState.REFUSED
    if message.sent_at:
        has_carrier = settings.SMS_SENDER != settings.PAGE_SMS_SENDER
        return MessageState.HANDED_OVER if has_carrier else MessageState.NO_CARRIER
    if message.ended_at:
        return MessageState.IN_DOUBT if message.claimed_at else MessageState.NOT_SENT
    return MessageState.WAITING
