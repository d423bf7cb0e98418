"""Finds the country of a phone number, which decides whether texts are sent to it, and which sender they show."""

import phonenumbers
from django.conf import settings


def country_of(phone: str) -> str:
    """Return the two-letter country code for an E.164 number.

    If the number does not identify a country, return the main country of its calling code.
    """
    number = phonenumbers.parse(phone)
    by_code = phonenumbers.region_code_for_country_code(number.country_code or 0)
    return phonenumbers.region_code_for_number(number) or by_code


def sender_id(phone: str) -> str:
    """Return the sender that a text to this E.164 number shows, which depends on the number's country.

    Return "" if no sender is configured for the country. Rule sms.sender_id.
    """
    ids: dict[str, str] = settings.SMS_SENDER_IDS
    return ids.get(country_of(phone), "")
