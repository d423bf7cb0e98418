"""The port to the carrier of SMS messages, and the sender of local and sandbox."""

from functools import cache
from typing import Protocol

from django.conf import settings
from django.utils.module_loading import import_string


class Sender(Protocol):
    """Sends SMS messages. A thread waits for it, so it must give up by itself within half a minute."""

    shows_codes: bool

    def send(self, phone: str, text: str, *, key: str) -> None:
        """Send `text` to an E.164 number. No `key` comes twice. May raise anything; nothing is sent again."""


class PageSender:
    """Sends nothing: in local and sandbox the page itself shows the code."""

    shows_codes = True

    def send(self, phone: str, text: str, *, key: str) -> None:
        """Do nothing: the page shows the code."""


@cache
def current() -> Sender:
    """Return the sender that settings.SMS_SENDER names."""
    sender: Sender = import_string(settings.SMS_SENDER)()
    return sender
