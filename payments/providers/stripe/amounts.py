"""Amounts as Stripe counts them: mostly in minor units of ISO 4217, but not for every currency.

Stripe's documentation: "Supported currencies", minimum amounts and special cases.
"""

from decimal import Decimal
from typing import NamedTuple

from payments import money
from payments.provider import AmountRule

# For a currency that is not here Stripe's minimum is worth about 0.50 USD: less is refused there, not here.
MINIMUM = {
    "AED": 200, "ARS": 50, "AUD": 50, "BRL": 50, "CAD": 50, "CHF": 50, "COP": 50, "CZK": 1500, "DKK": 250,
    "EUR": 50, "GBP": 30, "HKD": 400, "HUF": 17500, "IDR": 50, "ILS": 50, "INR": 50, "JPY": 50, "KRW": 50,
    "MXN": 1000, "MYR": 200, "NOK": 300, "NZD": 50, "PHP": 50, "PLN": 200, "RON": 200, "RUB": 50, "SEK": 300,
    "SGD": 50, "THB": 1000, "USD": 50, "ZAR": 50,
}  # fmt: skip
# Eight digits, as the reference of PaymentIntents says. Most cards can be charged more; Link, and JCB in Japan, cannot.
MAXIMUM = 99_999_999
WITHOUT_DECIMALS = frozenset(
    ("BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF", "XPF")
)
WITH_THREE_DECIMALS = frozenset(("BHD", "JOD", "KWD", "OMR", "TND"))
WHOLE_UNITS_OF_100 = frozenset(("ISK", "UGX"))  # written with two decimals that must be 0


class _Counted(NamedTuple):
    """How Stripe counts a currency: its decimals there, and the step of an amount in that count."""

    digits: int
    step: int


def _counted(currency: str) -> _Counted:
    if currency in WITHOUT_DECIMALS:
        return _Counted(0, 1)
    if currency in WITH_THREE_DECIMALS:
        return _Counted(3, 10)
    return _Counted(2, 100 if currency in WHOLE_UNITS_OF_100 else 1)


def rule(currency: str) -> AmountRule:
    """Return which amounts Stripe charges, in our minor units."""
    minimum = max(1, ours(MINIMUM.get(currency, 1), currency))
    step = max(1, ours(_counted(currency).step, currency))
    return AmountRule(minimum=minimum, step=step, maximum=ours(MAXIMUM, currency))


def theirs(amount: int, currency: str) -> int:
    """Return an amount of our minor units as Stripe counts it."""
    return int(Decimal(amount).scaleb(_counted(currency).digits - money.minor_digits(currency)))


def ours(amount: int, currency: str) -> int:
    """Return an amount that Stripe names in our minor units; `currency` as Stripe writes it, or as we do."""
    code = currency.upper()
    return int(Decimal(amount).scaleb(money.minor_digits(code) - _counted(code).digits))
