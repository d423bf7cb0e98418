"""Converts amounts between minor units and texts for people, and lists the currencies (rule money.minor_units)."""

import copy
import re
import unicodedata
from decimal import Decimal
from functools import cache, lru_cache

from babel.core import Locale, get_global
from babel.numbers import get_currency_precision, get_currency_symbol, list_currencies
from django.utils import translation

MAXIMUM = 99_999_999  # the largest amount that the service accepts, in minor units of any currency
_TYPED_AMOUNT = re.compile(r"([0-9]{1,9})(?:[.,]([0-9]{1,3}))?")
# Babel's data has the number of decimals that people use. For these currencies, ISO 4217 has more decimals, and
# providers follow ISO 4217.
ISO_DIGITS = {"IQD": 3} | dict.fromkeys(
    ["AFN", "ALL", "IRR", "KPW", "LAK", "LBP", "MGA", "MMK", "RSD", "SOS", "SYP", "YER"], 2
)

# Narrow symbols from CLDR 48 that are missing in Babel's data: `symbol alt="narrow"`, or the symbol that the
# currency's own country uses. A symbol is listed only if it is the same in all our languages.
NARROW_SYMBOLS = {
    code: symbol
    for symbol, codes in {
        "$": "ARS AUD BBD BMD BND BSD BZD CAD CLP COP CUP DOP FJD GYD HKD JMD KYD LRD MXN NAD NZD SBD SGD SRD TTD USD"
        " UYU XCD",
        "£": "GBP GIP SHP SSP",
        "¥": "CNY JPY",
        "kr": "DKK ISK SEK",
        "Rs": "LKR MUR NPR PKR",
        "₩": "KPW KRW",
        **{
            "֏": "AMD",
            "Kz": "AOA",
            "₼": "AZN",
            "KM": "BAM",
            "৳": "BDT",
            "Bs": "BOB",
            "R$": "BRL",
            "P": "BWP",
        },
        **{"₡": "CRC", "Kč": "CZK", "₾": "GEL", "Q": "GTQ", "L": "HNL", "Ft": "HUF", "Rp": "IDR", "₪": "ILS"},
        **{"₹": "INR", "៛": "KHR", "₸": "KZT", "₭": "LAK", "Ar": "MGA", "K": "MMK", "₮": "MNT", "RM": "MYR"},
        **{"₦": "NGN", "₱": "PHP", "zł": "PLN", "₲": "PYG", "₽": "RUB", "Db": "STN", "฿": "THB", "₺": "TRY"},
        **{"₴": "UAH", "₫": "VND", "R": "ZAR"},
    }.items()
    for code in codes.split()
}
# In these languages, an amount below the limit has no thousands separator, for example "1234,50 €". This is
# `minimumGroupingDigits` in CLDR, which Babel does not support.
GROUPED_FROM = {
    "es": 10_000,
    "it": 10_000,
}
_LETTER_THEN_DIGIT = re.compile(r"(?<=[^\W\d_])(?=\d)")  # CLDR requires a space between a letter and a digit


# Corrections to Babel's data. On 1 January 2026, the euro replaced Bulgaria's lev. ISO 4217 lists VED for Venezuela
# in addition to VES, but according to CLDR, VED is not legal tender.
WITHDRAWN_CURRENCIES, ADDED_CURRENCIES = frozenset({"BGN"}), frozenset({"VED"})


@cache
def currencies() -> frozenset[str]:
    """Return the ISO 4217 codes of all currencies that are used in a territory today."""
    in_use = {
        code
        for history in get_global("territory_currencies").values()
        for code, _start, end, tender in history
        if end is None and tender
    }
    return frozenset(in_use & list_currencies()) - WITHDRAWN_CURRENCIES | ADDED_CURRENCIES


def minor_digits(currency: str) -> int:
    """Return how many decimals a currency has in ISO 4217: 2 for GBP, 0 for JPY, 3 for KWD."""
    return ISO_DIGITS.get(currency, get_currency_precision(currency))


def plain_amount(amount: int, currency: str) -> str:
    """Return an amount in minor units as a person types it: digits, a point and the currency's decimals."""
    return f"{Decimal(amount).scaleb(-minor_digits(currency)):f}"


def parse(text: str, currency: str) -> int | None:
    """Return the amount that a person typed, in minor units, or None if it is not an amount of this currency.

    Currency signs and spaces are ignored. A comma counts as a decimal point.
    """
    digits = minor_digits(currency)
    bare = "".join(sign for sign in text if not sign.isspace() and unicodedata.category(sign) != "Sc")
    found = _TYPED_AMOUNT.fullmatch(bare)
    if found is None or len(found[2] or "") > digits:
        return None
    return int(found[1] + (found[2] or "").ljust(digits, "0"))


def display(amount: int, currency: str) -> str:
    """Return an amount in minor units, formatted for the active language, with a true minus sign. Rule page.dates."""
    return _format_amount(amount, currency, _active_locale(), is_narrow=False)


def display_for_payer(amount: int, currency: str) -> str:
    """Return an amount as `display` does, but with the narrow symbol of the currency, such as "95,50 £" in French.

    A payer knows which dollar a shop means. A merchant's list can contain several currencies with the same symbol.
    Rule page.signs.
    """
    return _format_amount(amount, currency, _active_locale(), is_narrow=True)


def _active_locale() -> str:
    return translation.to_locale(translation.get_language() or "en")


@lru_cache(4096)  # cached, because a page that refreshes every second shows the same amounts
def _format_amount(amount: int, currency: str, locale: str, *, is_narrow: bool) -> str:
    digits = minor_digits(currency)
    pattern = copy.copy(Locale.parse(locale).currency_formats["standard"])
    pattern.frac_prec = (digits, digits)
    value = Decimal(amount).scaleb(-digits)
    is_grouped = abs(value) >= GROUPED_FROM.get(locale, 0)
    text: str = pattern.apply(value, locale, currency_digits=False, group_separator=is_grouped)
    symbol = get_currency_symbol(currency, locale)
    if is_narrow:
        symbol = NARROW_SYMBOLS.get(currency, symbol)
    text = text.replace("\N{CURRENCY SIGN}", symbol).replace("-", "\N{MINUS SIGN}")
    return _LETTER_THEN_DIGIT.sub("\N{NO-BREAK SPACE}", text) if is_narrow else text
