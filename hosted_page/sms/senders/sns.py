"""Sends SMS messages with Amazon SNS through boto3, which finds region and credentials in the usual places.

SNS accepts no idempotency key for a phone number, and reports deliveries only in its own log. The service
therefore makes each request once, without boto3's retries. It repeats a request only if SNS certainly did not
accept it. Rule sms.doubt.
"""

from typing import Any

import boto3
from botocore import exceptions
from botocore.config import Config
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from hosted_page.sms import countries, senders
from hosted_page.sms.senders import InDoubt, NotAccepted, NotSent, Refused

TOO_MANY = 429
THROTTLED = {"Throttled", "Throttling", "ThrottlingException", "RequestLimitExceeded", "KMSThrottling"}
REASONS = {
    "OptedOut": "opted_out",
    # SNS also uses this code for an unknown sender. Only the error text differs.
    "InvalidParameter": "invalid_number",
    "InvalidParameterValue": "invalid_number",
    "ParameterValueInvalid": "invalid_number",
    "AuthorizationError": "not_allowed",
    "InvalidClientTokenId": "wrong_credentials",
    "SignatureDoesNotMatch": "wrong_credentials",
    "ExpiredToken": "wrong_credentials",
}
CONNECTION_ERRORS = (
    exceptions.EndpointConnectionError,
    exceptions.ConnectTimeoutError,
    exceptions.ProxyConnectionError,
)
CREDENTIAL_ERRORS = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.CredentialRetrievalError,
)


class SnsSender:
    """Sender that sends transactional messages through Amazon SNS."""

    shows_codes = False

    def __init__(self) -> None:
        session = boto3.session.Session()
        if not session.region_name:
            _refuse_settings("SNS wants a region: set AWS_DEFAULT_REGION.")
        if session.get_credentials() is None:
            _refuse_settings("SNS wants credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a role.")
        config = Config(
            connect_timeout=senders.SECONDS,
            read_timeout=senders.SECONDS,
            retries={"total_max_attempts": 1},
            max_pool_connections=settings.SMS_SLOTS,
        )
        self.client = session.client("sns", config=config)

    def send(self, phone: str, text: str, *, key: str) -> None:
        """Send an SMS message. `key` is not used."""
        try:
            self.client.publish(PhoneNumber=phone, Message=text, MessageAttributes=_message_attributes(phone))
        except Exception as error:
            raise classify_error(error) from None  # SNS puts the phone number into its error texts

    def check_access(self) -> None:
        """Read the SMS attributes of the account. An account that is not allowed to read them is accepted too."""
        try:
            self.client.get_sms_attributes()
        except Exception as error:
            failure = classify_error(error)
            if failure.reason != "not_allowed":
                raise failure from None


def _refuse_settings(reason: str) -> None:
    raise ImproperlyConfigured(f"ENVIRONMENT={settings.ENVIRONMENT}: {reason}")


def _message_attributes(phone: str) -> dict[str, Any]:
    sender_id = countries.sender_id(phone)
    attributes = {"AWS.SNS.SMS.SMSType": "Transactional"}
    if sender_id:
        is_number = sender_id.lstrip("+").isdigit()
        attributes["AWS.MM.SMS.OriginationNumber" if is_number else "AWS.SNS.SMS.SenderID"] = sender_id
    return {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}


def classify_error(error: Exception) -> NotSent:
    """Return the result that a boto3 error means for the message."""
    match error:
        case exceptions.ClientError(response=answer):
            return _error_of_answer(answer)
        case _ if isinstance(error, CONNECTION_ERRORS):
            return NotAccepted("no_connection")
        case _ if isinstance(error, CREDENTIAL_ERRORS):
            return Refused("no_credentials")
        case exceptions.ParamValidationError():
            return Refused("invalid_parameter")
    return InDoubt("no_answer")


def _error_of_answer(answer: Any) -> NotSent:
    status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    code = str(answer.get("Error", {}).get("Code", ""))
    if status == TOO_MANY or code in THROTTLED:
        return NotAccepted("too_many_requests")
    if 400 <= status < 500:
        is_known_form = code.isascii() and code.isalnum()
        return Refused(REASONS.get(code) or (f"sns_{code}" if is_known_form else "other"))
    return InDoubt(f"http_{status}")
