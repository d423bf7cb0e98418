"""Minor units, currencies and how people read them (rule money.minor_units)."""

import copy
import re
import unicodedata
from decimal import Decimal
from functools import cache, lru_cache

from babel.core import Locale, get_global
from babel.numbers import get_currency_precision, get_currency_symbol, list_currencies
from django.utils import translation

MAXIMUM = 99_999_999  # of an amount that the service accepts, in minor units of any currency
_TYPED = re.compile(r"([0-9]{1,9})(?:[.,]([0-9]{1,3}))?")
# Babel knows how many decimals people use. Providers count by ISO 4217, which has more of them for these.
ISO_DIGITS = {"IQD": 3} | dict.fromkeys(
    ["AFN", "ALL", "IRR", "KPW", "LAK", "LBP", "MGA", "MMK", "RSD", "SOS", "SYP", "YER"], 2
)

# CLDR 48's narrow symbols (`symbol alt="narrow"`, or the symbol of the currency's own country), where every language
# of ours has the same one: Babel's data leaves them out.
NARROW = {
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
GROUPED_FROM = {
    "es": 10_000,
    "it": 10_000,
}  # CLDR's minimumGroupingDigits, which Babel does not know: "1234,50 €"
_LETTER_THEN_DIGIT = re.compile(r"(?<=[^\W\d_])(?=\d)")  # CLDR puts a space between them


# Where ISO 4217's list is another than Babel's data: Bulgaria's lev gave way to the euro on 1 January 2026, and
# Venezuela's VED, which CLDR calls no tender, is listed beside VES.
GONE, LISTED = frozenset({"BGN"}), frozenset({"VED"})


@cache
def currencies() -> frozenset[str]:
    """Return the ISO 4217 codes that some territory uses as money today."""
    in_use = {
        code
        for history in get_global("territory_currencies").values()
        for code, _start, end, tender in history
        if end is None and tender
    }
    return frozenset(in_use & list_currencies()) - GONE | LISTED


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
    return _displayed(amount, currency, _locale(), is_narrow=False)


def for_payer(amount: int, currency: str) -> str:
    """Return an amount as `display` does, with the sign that the currency has where it is the only one of its kind.

    "95,50 £" in French: a payer knows which pounds or dollars a shop means, a merchant's list may hold several.
    Rule page.signs.
    """
    return _displayed(amount, currency, _locale(), is_narrow=True)


def _locale() -> str:
    return translation.to_locale(translation.get_language() or "en")


@lru_cache(4096)  # a page that refreshes itself shows the same amounts every second
def _displayed(amount: int, currency: str, locale: str, *, is_narrow: bool) -> str:
    digits = minor_digits(currency)
    pattern = copy.copy(Locale.parse(locale).currency_formats["standard"])
    pattern.frac_prec = (digits, digits)
    value = Decimal(amount).scaleb(-digits)
    is_grouped = abs(value) >= GROUPED_FROM.get(locale, 0)
    text: str = pattern.apply(value, locale, currency_digits=False, group_separator=is_grouped)
    symbol = get_currency_symbol(currency, locale)
    if is_narrow:
        symbol = NARROW.get(currency, symbol)
    text = text.replace("\N{CURRENCY SIGN}", symbol).replace("-", "\N{MINUS SIGN}")
    return _LETTER_THEN_DIGIT.sub("\N{NO-BREAK SPACE}", text) if is_narrow else text
