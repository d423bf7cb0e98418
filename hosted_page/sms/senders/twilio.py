"""Sends SMS messages with Twilio's library.

Twilio's API has no idempotency key, so a repeated request sends a second message. The service therefore makes
each request once, and repeats it only if Twilio certainly did not accept it. Rule sms.doubt.
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
from hosted_page.sms.senders import InDoubt, NotAccepted, NotSent, Refused

QUEUED_SECONDS = 600  # how long a message can wait at Twilio: the lifetime of a code
TOO_MANY = 429
TOO_MANY_CODES = {20429, 21611}  # too many requests, or too many waiting messages for one number
REASONS = {  # Twilio sometimes adds more specific codes; an unknown code is shown unchanged
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
_silent = logging.Logger("twilio", level=logging.CRITICAL + 1)  # the library would log numbers and texts


class TwilioSender:
    """Sender that sends messages through Twilio, which reports each delivery in a callback (rule sms.receipt)."""

    shows_codes = False

    def __init__(self) -> None:
        # Use a new connection for each message. A reused connection might be dead, and the outcome of the
        # message would then be unknown.
        http = TwilioHttpClient(pool_connections=False, timeout=senders.SECONDS, logger=_silent)
        self.client = Client(settings.TWILIO_ACCOUNT_SID, settings.TWILIO_AUTH_TOKEN, http_client=http)

    def send(self, phone: str, text: str, *, key: str) -> None:
        """Send an SMS message. `key` is the id of the message, and Twilio's callback contains it."""
        try:
            self.client.messages.create(
                to=phone,
                body=text,
                status_callback=settings.BASE_URL + reverse("twilio_receipt", args=[key]),
                validity_period=QUEUED_SECONDS,
                **_sender_fields(phone),
            )
        except Exception as error:
            raise classify_error(error) from None  # Twilio's error text contains the number

    def check_access(self) -> None:
        try:
            self.client.api.accounts(settings.TWILIO_ACCOUNT_SID).fetch()
        except Exception as error:
            raise classify_error(error) from None


def _sender_fields(phone: str) -> dict[str, Any]:
    sender_id = countries.sender_id(phone) or settings.TWILIO_FROM
    return (
        {"from_": sender_id}
        if sender_id
        else {"messaging_service_sid": settings.TWILIO_MESSAGING_SERVICE_SID}
    )


def classify_error(error: Exception) -> NotSent:
    """Return the result that an error from Twilio's library means for the message."""
    match error:
        case TwilioRestException(status=status, code=code) | TwilioServiceException(status=status, code=code):
            return _error_of_answer(status, code)
        case requests.ConnectTimeout():
            return NotAccepted("no_connection")
        case requests.ConnectionError() if _never_connected(error):
            return NotAccepted("no_connection")
    return InDoubt("no_answer")


def _error_of_answer(status: int, code: int | None) -> NotSent:
    if status == TOO_MANY or code in TOO_MANY_CODES:
        return NotAccepted("too_many_requests")
    if 400 <= status < 500:
        return Refused(f"http_{status}" if code == status else reason(code) or f"http_{status}")
    return InDoubt(f"http_{status}")


def reason(code: object) -> str:
    """Return the reason for a Twilio error code, or "" if there is no code."""
    digits = str(code or "")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 8):
        return "other" if digits else ""
    return REASONS.get(int(digits), f"twilio_{digits}")


def _never_connected(error: requests.ConnectionError) -> bool:
    """Return whether no data was sent, because the connection was refused or the host name was not found."""
    cause = error.args[0] if error.args else None
    return type(getattr(cause, "reason", None)).__name__ in ("NewConnectionError", "NameResolutionError")
