"""The country of a number, by which SMS messages are allowed and get their sender."""

import phonenumbers
from django.conf import settings


def country_of(phone: str) -> str:
    """Return the two letters of an E.164 number's country; those of its code's main country if it is not clear."""
    number = phonenumbers.parse(phone)
    by_code = phonenumbers.region_code_for_country_code(number.country_code or 0)
    return phonenumbers.region_code_for_number(number) or by_code


def sender_id(phone: str) -> str:
    """Return what is shown as the sender to an E.164 number, by its country; "" where nothing is set.

    Rule sms.sender_id.
    """
    ids: dict[str, str] = settings.SMS_SENDER_IDS
    return ids.get(country_of(phone), "")
