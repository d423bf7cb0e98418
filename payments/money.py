"""Minor units, currencies and how people read them."""

from decimal import Decimal
from functools import cache

from babel.core import get_global
from babel.numbers import format_currency, get_currency_precision, list_currencies
from django.utils import translation


@cache
def currencies() -> frozenset[str]:
    """Return the ISO 4217 codes that some territory uses as money today."""
    in_use = {
        code
        for history in get_global("territory_currencies").values()
        for code, _start, end, tender in history
        if end is None and tender
    }
    return frozenset(in_use & list_currencies())


def minor_digits(currency: str) -> int:
    """Return the number of decimals of a currency: 2 for GBP, 0 for JPY, 3 for KWD."""
    return get_currency_precision(currency)


def display(amount: int, currency: str) -> str:
    """Return an amount of minor units as people read it in the active language, with a true minus."""
    digits = minor_digits(currency)
    value = Decimal(amount).scaleb(-digits)
    locale = translation.to_locale(translation.get_language() or "en")
    text = format_currency(value, currency, locale=locale, currency_digits=True)
    return text.replace("-", "\N{MINUS SIGN}")
