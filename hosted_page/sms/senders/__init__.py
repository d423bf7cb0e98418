"""The port to the carrier of SMS messages, and its senders: the page itself, Twilio, Amazon SNS."""

from functools import cache
from typing import Protocol

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

SECONDS = 10  # for which a carrier is waited for, at each step of a call
LONGEST_REASON = 32


class NotSent(Exception):
    """The carrier does not say that it took the message. `reason` is a word for operators, of no person and code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason[:LONGEST_REASON]


class NotTaken(NotSent):
    """The carrier surely has not taken it, and may a little later: it is out of reach, or has too much to do."""


class Refused(NotSent):
    """The carrier has not taken it and never will: the number, the sender or the account is wrong."""


class InDoubt(NotSent):
    """The carrier may have taken it: the answer was lost, or says nothing."""


class Sender(Protocol):
    """Sends SMS messages. A thread waits for it, so it must give up by itself within half a minute."""

    shows_codes: bool

    def send(self, phone: str, text: str, *, key: str) -> None:
        """Send `text` to an E.164 number. A `key` comes again only after NotTaken.

        Raises NotTaken, Refused, InDoubt; anything else that it raises counts as InDoubt.
        """


@cache
def current() -> Sender:
    """Return the sender that settings.SMS_SENDER names."""
    sender: Sender = import_string(settings.SMS_SENDER)()
    return sender


def require() -> None:
    """Raise ImproperlyConfigured, with a sentence, if the sender cannot be made."""
    try:
        current()
    except ImportError:
        raise ImproperlyConfigured(
            f"ENVIRONMENT={settings.ENVIRONMENT}: SMS_SENDER names no class that is installed."
        ) from None
