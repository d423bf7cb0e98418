"""Converts amounts to and from Stripe's units. For most currencies, these are the minor units of ISO 4217.

Stripe's documentation: "Supported currencies", minimum amounts and special cases.
"""

from decimal import Decimal
from typing import NamedTuple

from payments import money
from payments.provider import AmountRule

# Stripe's minimum amounts. For a currency that is not listed, the minimum is worth about 0.50 USD. This service does
# not check that minimum, but Stripe refuses a smaller amount.
MINIMUM = {
    "AED": 200, "ARS": 50, "AUD": 50, "BRL": 50, "CAD": 50, "CHF": 50, "COP": 50, "CZK": 1500, "DKK": 250,
    "EUR": 50, "GBP": 30, "HKD": 400, "HUF": 17500, "IDR": 50, "ILS": 50, "INR": 50, "JPY": 50, "KRW": 50,
    "MXN": 1000, "MYR": 200, "NOK": 300, "NZD": 50, "PHP": 50, "PLN": 200, "RON": 200, "RUB": 50, "SEK": 300,
    "SGD": 50, "THB": 1000, "USD": 50, "ZAR": 50,
}  # fmt: skip
# Stripe's reference for PaymentIntents allows eight digits. Most cards can be charged more, but Link cannot, and JCB
# in Japan cannot either.
MAXIMUM = 99_999_999
WITHOUT_DECIMALS = frozenset(
    ("BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF", "XPF")
)
WITH_THREE_DECIMALS = frozenset(("BHD", "JOD", "KWD", "OMR", "TND"))
WHOLE_UNITS_OF_100 = frozenset(("ISK", "UGX"))  # written with two decimals, which must be 0


class _MinorUnits(NamedTuple):
    """How Stripe counts amounts in a currency: with this number of decimals, and in multiples of `step`."""

    digits: int
    step: int


def _minor_units_rule(currency: str) -> _MinorUnits:
    if currency in WITHOUT_DECIMALS:
        return _MinorUnits(0, 1)
    if currency in WITH_THREE_DECIMALS:
        return _MinorUnits(3, 10)
    return _MinorUnits(2, 100 if currency in WHOLE_UNITS_OF_100 else 1)


def amount_rule(currency: str) -> AmountRule:
    """Return the amounts that Stripe can charge in a currency, in our minor units."""
    minimum = max(1, from_stripe_amount(MINIMUM.get(currency, 1), currency))
    step = max(1, from_stripe_amount(_minor_units_rule(currency).step, currency))
    return AmountRule(minimum=minimum, step=step, maximum=from_stripe_amount(MAXIMUM, currency))


def to_stripe_amount(amount: int, currency: str) -> int:
    """Convert an amount from our minor units to Stripe's units."""
    return int(Decimal(amount).scaleb(_minor_units_rule(currency).digits - money.minor_digits(currency)))


def from_stripe_amount(amount: int, currency: str) -> int:
    """Convert an amount from Stripe's units to our minor units. `currency` can be in lower or upper case."""
    code = currency.upper()
    return int(Decimal(amount).scaleb(money.minor_digits(code) - _minor_units_rule(code).digits))
