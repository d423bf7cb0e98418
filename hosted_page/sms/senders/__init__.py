"""The port to the SMS carrier, and its senders: Twilio, Amazon SNS, or none (the page shows the code)."""

from functools import cache
from typing import Protocol

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

SECONDS = 10  # timeout for each step of a call to a carrier
LONGEST_REASON = 32


class NotSent(Exception):
    """The carrier did not confirm the message. `reason` has no personal data and no code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason[:LONGEST_REASON]


class NotAccepted(NotSent):
    """The carrier is unreachable or overloaded. It did not accept the message, but might accept a retry."""


class Refused(NotSent):
    """The carrier rejects the message permanently, because the number, the sender or the account is wrong."""


class InDoubt(NotSent):
    """The carrier might have accepted the message, because its response was lost or is unclear."""


class Sender(Protocol):
    """Sends SMS messages. A thread waits for the sender, so a sender must give up within 30 seconds."""

    shows_codes: bool

    def send(self, phone: str, text: str, *, key: str) -> None:
        """Send `text` to an E.164 number. The caller sends the same `key` again only after NotAccepted.

        Raises NotAccepted, Refused, InDoubt. The caller treats any other exception as InDoubt.
        """

    def check_access(self) -> None:
        """Return if the carrier answers and accepts the account, otherwise raise as `send` does. No message is sent."""


@cache
def current_sender() -> Sender:
    """Return the sender that is configured in settings.SMS_SENDER."""
    sender: Sender = import_string(settings.SMS_SENDER)()
    return sender


def require_sender() -> None:
    """Raise ImproperlyConfigured with an explanation if the sender cannot be created."""
    try:
        current_sender()
    except ImportError:
        raise ImproperlyConfigured(
            f"ENVIRONMENT={settings.ENVIRONMENT}: SMS_SENDER names no class that is installed."
        ) from None
