"""SMS messages by Twilio, with its own library.

Twilio's API knows no idempotency key: a request that is repeated is a second message. So a request is made once, and
is repeated only where Twilio surely has not taken it. Rule sms.doubt.
"""

import logging
from typing import Any

import requests
from django.conf import settings
from django.urls import reverse
from twilio.base.exceptions import TwilioRestException, TwilioServiceException
from twilio.http.http_client import TwilioHttpClient
from twilio.rest import Client

from hosted_page.sms import countries, senders
from hosted_page.sms.senders import InDoubt, NotSent, NotTaken, Refused

QUEUED_SECONDS = 600  # for which a message may wait at Twilio: a code lives no longer
TOO_MANY = 429
TOO_MANY_CODES = {20429, 21611}  # of requests, and of messages that wait for one number
REASONS = {  # Twilio makes finer codes of these from time to time: one that is not here is shown as it is
    20003: "wrong_credentials",
    21211: "invalid_number",
    21212: "unknown_sender",
    21408: "country_not_enabled",
    21606: "unknown_sender",
    21608: "number_not_verified",
    21610: "opted_out",
    21612: "number_not_reachable",
    21614: "no_mobile_number",
    21617: "too_long",
    30007: "filtered_by_carrier",
}
_silent = logging.Logger("twilio", level=logging.CRITICAL + 1)  # the library logs numbers and words


class TwilioSender:
    """Sends by Twilio, which calls back with what became of each message (rule sms.receipt)."""

    shows_codes = False

    def __init__(self) -> None:
        # A connection is made for each message: a kept one may be dead, which leaves the outcome unknown.
        http = TwilioHttpClient(pool_connections=False, timeout=senders.SECONDS, logger=_silent)
        self.client = Client(settings.TWILIO_ACCOUNT_SID, settings.TWILIO_AUTH_TOKEN, http_client=http)

    def send(self, phone: str, text: str, *, key: str) -> None:
        """Send an SMS message; `key` is its id, which names it in Twilio's callback."""
        try:
            self.client.messages.create(
                to=phone,
                body=text,
                status_callback=settings.BASE_URL + reverse("twilio_receipt", args=[key]),
                validity_period=QUEUED_SECONDS,
                **_sender(phone),
            )
        except Exception as error:
            raise outcome(error) from None  # Twilio's words repeat the number


def _sender(phone: str) -> dict[str, Any]:
    own = countries.sender_id(phone) or settings.TWILIO_FROM
    return {"from_": own} if own else {"messaging_service_sid": settings.TWILIO_MESSAGING_SERVICE_SID}


def outcome(error: Exception) -> NotSent:
    """Return what an error of the library means for the message."""
    match error:
        case TwilioRestException(status=status, code=code) | TwilioServiceException(status=status, code=code):
            return _answered(status, code)
        case requests.ConnectTimeout():
            return NotTaken("no_connection")
        case requests.ConnectionError() if _never_connected(error):
            return NotTaken("no_connection")
    return InDoubt("no_answer")


def _answered(status: int, code: int | None) -> NotSent:
    if status == TOO_MANY or code in TOO_MANY_CODES:
        return NotTaken("too_many_requests")
    if 400 <= status < 500:
        return Refused(f"http_{status}" if code == status else reason(code) or f"http_{status}")
    return InDoubt(f"http_{status}")


def reason(code: object) -> str:
    """Return the reason that a code of Twilio stands for, "" for none."""
    digits = str(code or "")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 8):
        return "other" if digits else ""
    return REASONS.get(int(digits), f"twilio_{digits}")


def _never_connected(error: requests.ConnectionError) -> bool:
    """Return whether the connection was refused, or its name not found, before anything was sent."""
    cause = error.args[0] if error.args else None
    return type(getattr(cause, "reason", None)).__name__ in ("NewConnectionError", "NameResolutionError")
