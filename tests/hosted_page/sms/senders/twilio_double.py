"""A test double of Twilio's Messages resource.

It follows Twilio's reference for API 2010-04-01, "Create a Message", and checks every field. Clients can also
read the account. A message fails for the same phone numbers as with Twilio's test credentials.
"""

import base64
import json
import re
from urllib.parse import urlsplit

from tests.hosted_page.sms.senders.doubles import Answer, Request

ACCOUNT, KEY = "AC" + "0a" * 16, "1b" * 16
ACCOUNT_PATH = f"/2010-04-01/Accounts/{ACCOUNT}.json"
MESSAGES_PATH = f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json"
SERVICE = "MG" + "2c" * 16
OWN = "+15005550006"
MAY_BE_GIVEN = {"To", "From", "MessagingServiceSid", "Body", "StatusCallback", "ValidityPeriod"}
OF_TO = {
    "+15005550001": (21211, "Invalid 'To' Phone Number: {to}"),
    "+15005550002": (21612, "Message cannot be sent with the current combination of 'To' ({to}) and 'From'"),
    "+15005550003": (21408, "Permission to send an SMS has not been enabled for the region of {to}"),
    "+15005550004": (21610, "Attempt to send to unsubscribed recipient {to}"),
    "+15005550009": (21614, "'To' number {to} is not a valid mobile number"),
    "+15005550010": (21635, "{to} is a landline"),
}
OF_FROM = {
    "+15005550001": (21212, "Invalid From Number"),
    "+15005550007": (21606, "The 'From' phone number is not a valid message-capable number"),
    "+15005550008": (21611, "This 'From' number has exceeded the maximum number of queued messages"),
}


def act(request: Request) -> Answer:
    """Respond as Twilio does: 201 with the message, or an error status with an error code and a text."""
    if request.path not in (ACCOUNT_PATH, MESSAGES_PATH):
        return error(404, 20404, f"The requested resource {request.path} was not found")
    signed_in = base64.b64encode(f"{ACCOUNT}:{KEY}".encode()).decode()
    if request.headers.get("authorization") != f"Basic {signed_in}":
        return error(401, 20003, "Authenticate")
    if request.path == ACCOUNT_PATH and request.method == "GET":
        return Answer(200, json.dumps({"sid": ACCOUNT, "status": "active", "type": "Full"}))
    if request.headers.get("content-type") != "application/x-www-form-urlencoded":
        return error(415, 20415, "Unsupported media type")
    return _look(request.form)


def _look(form: dict[str, str]) -> Answer:
    wrong = _wrong_fields(form)
    if wrong:
        return error(400, 20001, wrong)
    to = form["To"]
    failing = OF_TO.get(to) or OF_FROM.get(form.get("From", ""))
    if failing:
        code, words = failing
        return error(400, code, words.format(to=to))
    return Answer(201, json.dumps(_message(form)))


def _wrong_fields(form: dict[str, str]) -> str:
    callback = urlsplit(form.get("StatusCallback", ""))
    is_right = {
        "fields": set(form) <= MAY_BE_GIVEN,
        "To": re.fullmatch(r"\+[1-9]\d{6,14}", form.get("To", "")),
        "From": ("From" in form) != ("MessagingServiceSid" in form),
        "MessagingServiceSid": re.fullmatch(r"MG[0-9a-f]{32}", form.get("MessagingServiceSid", SERVICE)),
        "Body": 0 < len(form.get("Body", "")) <= 1600,
        "StatusCallback": callback.scheme == "https" and callback.hostname and "_" not in callback.hostname,
        "ValidityPeriod": 1 <= int(form.get("ValidityPeriod", "36000")) <= 36000,
    }
    return next((f"Invalid {name}" for name, right in is_right.items() if not right), "")


def _message(form: dict[str, str]) -> dict[str, object]:
    sid = "SM" + "3d" * 16
    return {
        "sid": sid,
        "account_sid": ACCOUNT,
        "api_version": "2010-04-01",
        "body": form["Body"],
        "date_created": "Mon, 23 Nov 2026 05:00:00 +0000",
        "date_sent": None,
        "date_updated": "Mon, 23 Nov 2026 05:00:00 +0000",
        "direction": "outbound-api",
        "error_code": None,
        "error_message": None,
        "from": form.get("From"),
        "messaging_service_sid": form.get("MessagingServiceSid"),
        "num_media": "0",
        "num_segments": "1",
        "price": None,
        "price_unit": "USD",
        "status": "queued",
        "subresource_uris": {"media": f"/2010-04-01/Accounts/{ACCOUNT}/Messages/{sid}/Media.json"},
        "to": form["To"],
        "uri": f"/2010-04-01/Accounts/{ACCOUNT}/Messages/{sid}.json",
    }


def error(status: int, code: int, words: str) -> Answer:
    more = f"https://www.twilio.com/docs/errors/{code}"
    return Answer(status, json.dumps({"code": code, "message": words, "more_info": more, "status": status}))
