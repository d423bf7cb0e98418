"""Parses mobile numbers in the notations that people and merchants use (rule sign_in.number)."""

import phonenumbers

MAX_LETTERS = 40


class InvalidPhone(Exception):
    """The text is not a number that can receive an SMS message."""


def parse_number(text: str, country: str, *, also_fictional: bool) -> str:
    """Return the E.164 form of a mobile number in any common notation. Raises InvalidPhone.

    A number without a leading + is read as a number in `country`, a two-letter ISO code. Numbers that are
    reserved for fiction (such as +44 7700 900123) are accepted only if `also_fictional` is true.
    """
    try:
        number = phonenumbers.parse(text[:MAX_LETTERS], country)
    except phonenumbers.NumberParseException:
        raise InvalidPhone from None
    if number.extension:  # a text cannot be sent to an extension
        raise InvalidPhone
    if not _is_mobile(number) and not (also_fictional and _is_fictional(number)):
        raise InvalidPhone
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _is_mobile(number: phonenumbers.PhoneNumber) -> bool:
    kinds = phonenumbers.PhoneNumberType
    return phonenumbers.number_type(number) in (kinds.MOBILE, kinds.FIXED_LINE_OR_MOBILE)


def _is_fictional(number: phonenumbers.PhoneNumber) -> bool:
    """Return whether the number has the length of a mobile number in its country, but is outside every range in use."""
    if phonenumbers.number_type(number) != phonenumbers.PhoneNumberType.UNKNOWN:
        return False
    region = phonenumbers.region_code_for_country_code(number.country_code or 0)
    example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    return example is not None and len(str(number.national_number)) == len(str(example.national_number))
