"""Minor units, currencies and how people read them (rule money.minor_units)."""

import copy
import re
import unicodedata
from decimal import Decimal
from functools import cache, lru_cache

from babel.core import Locale, get_global
from babel.numbers import get_currency_precision, list_currencies
from django.utils import translation

_TYPED = re.compile(r"([0-9]{1,9})(?:[.,]([0-9]{1,3}))?")
# Babel knows how many decimals people use. Providers count by ISO 4217, which has more of them for these.
ISO_DIGITS = {"IQD": 3} | dict.fromkeys(
    ["AFN", "ALL", "IRR", "KPW", "LAK", "LBP", "MGA", "MMK", "RSD", "SOS", "SYP", "YER"], 2
)


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
    """Return the number of decimals of a currency by ISO 4217: 2 for GBP, 0 for JPY, 3 for KWD."""
    return ISO_DIGITS.get(currency, get_currency_precision(currency))


def plain(amount: int, currency: str) -> str:
    """Return an amount of minor units as it is typed: digits, a point and the currency's decimals."""
    return f"{Decimal(amount).scaleb(-minor_digits(currency)):f}"


def parse(text: str, currency: str) -> int | None:
    """Return the amount that a person typed, in minor units; None if it is no amount of this currency.

    Currency signs and spaces are ignored; a comma counts as a decimal point.
    """
    digits = minor_digits(currency)
    bare = "".join(sign for sign in text if not sign.isspace() and unicodedata.category(sign) != "Sc")
    found = _TYPED.fullmatch(bare)
    if found is None or len(found[2] or "") > digits:
        return None
    return int(found[1] + (found[2] or "").ljust(digits, "0"))


def display(amount: int, currency: str) -> str:
    """Return an amount of minor units as people read it in the active language, with a true minus."""
    return _displayed(amount, currency, translation.to_locale(translation.get_language() or "en"))


@lru_cache(4096)  # a page that refreshes itself shows the same amounts every second
def _displayed(amount: int, currency: str, locale: str) -> str:
    digits = minor_digits(currency)
    pattern = copy.copy(Locale.parse(locale).currency_formats["standard"])
    pattern.frac_prec = (digits, digits)
    value = Decimal(amount).scaleb(-digits)
    text: str = pattern.apply(value, locale, currency=currency, currency_digits=False)
    return text.replace("-", "\N{MINUS SIGN}")
