"""Reads a mobile number as a payer types it, and shows an example number on the page (rule sign_in.number)."""

import phonenumbers
from babel import Locale
from django.utils.translation import get_language, to_locale
from django.utils.translation import gettext as _

from checkout.customers import numbers
from checkout.customers.numbers import InvalidPhone
from hosted_page.sms import senders
from payments.models import Merchant

__all__ = ["InvalidPhone", "example_phone", "parse_phone", "phone_hint", "wrong_number_text"]


def parse_phone(text: str, merchant: Merchant) -> str:
    """Return the E.164 form of a mobile number in any common notation. Raises InvalidPhone.

    If the page shows the codes instead of sending them, fictional numbers such as +44 7700 900123 are valid too.
    """
    return numbers.parse_number(text, merchant.country, also_fictional=senders.current_sender().shows_codes)


def example_phone(merchant: Merchant) -> str:
    """Return an example of a mobile number, in the notation of the merchant's country."""
    if merchant.country == "GB":
        return "07700 900123"
    number = phonenumbers.example_number_for_type(merchant.country, phonenumbers.PhoneNumberType.MOBILE)
    if number is None:
        return "+44 7700 900123"
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)


def wrong_number_text(merchant: Merchant) -> str:
    """Return the error for a text that is not a mobile number."""
    return _("Enter a mobile number, such as {example}.").format(example=example_phone(merchant))


def phone_hint(merchant: Merchant) -> str:
    """Return the hint below the field for a number."""
    if merchant.country == "GB":
        return _("UK number. For another country, start with + and the country code.")
    names = Locale.parse(to_locale(get_language() or "en")).territories
    hint = _("Number from {country}. For another country, start with + and the country code.")
    return hint.format(country=names.get(merchant.country, merchant.country))


def mask_number(phone: str) -> str:
    """Return the phone number masked except for its last four digits, or "" if there is no number."""
    return f"•••• {phone[-4:]}" if phone else ""
