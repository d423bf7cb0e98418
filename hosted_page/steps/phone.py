"""Mobile numbers as payers type them: read in any common form, and an example for the page (rule sign_in.number)."""

import phonenumbers

from hosted_page.sms import senders
from payments.models import Merchant


class InvalidPhone(Exception):
    """Not a number that can get an SMS message."""


def parse_phone(text: str, merchant: Merchant) -> str:
    """Return the E.164 form of a mobile number in any common way of writing. Raises InvalidPhone."""
    try:
        number = phonenumbers.parse(text[:40], merchant.country)
    except phonenumbers.NumberParseException:
        raise InvalidPhone from None
    if not _can_get_sms(number):
        raise InvalidPhone
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def example_phone(merchant: Merchant) -> str:
    """Return an example of a mobile number, written as in the merchant's country."""
    if merchant.country == "GB":
        return "07700 900123"
    number = phonenumbers.example_number_for_type(merchant.country, phonenumbers.PhoneNumberType.MOBILE)
    if number is None:
        return "+44 7700 900123"
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)


def _can_get_sms(number: phonenumbers.PhoneNumber) -> bool:
    """Return whether a number can get SMS messages; where none is sent, fictional ones (+44 7700 900123) count too."""
    kind = phonenumbers.number_type(number)
    if kind in (phonenumbers.PhoneNumberType.MOBILE, phonenumbers.PhoneNumberType.FIXED_LINE_OR_MOBILE):
        return True
    if kind != phonenumbers.PhoneNumberType.UNKNOWN or not senders.current().shows_codes:
        return False
    region = phonenumbers.region_code_for_country_code(number.country_code or 0)
    example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    return example is not None and len(str(number.national_number)) == len(str(example.national_number))
