"""Amounts are converted correctly if Stripe and ISO 4217 use different decimals for a currency."""

import pytest

from payments.provider import AmountRule
from payments.providers.stripe import amounts


class TestAnAmount:
    @pytest.mark.parametrize(
        ("currency", "ours", "theirs"),
        [
            ("GBP", 9000, 9000),
            ("JPY", 500, 500),
            ("KWD", 1250, 1250),
            ("ISK", 350, 35000),  # no decimals in ISO 4217; two decimals at Stripe, which must be 0
            ("UGX", 5000, 500000),
            ("MGA", 120000, 1200),  # two decimals in ISO 4217; no decimals at Stripe
        ],
    )
    def test_is_converted_to_stripes_units_and_back(self, currency: str, ours: int, theirs: int) -> None:
        assert amounts.to_stripe_amount(ours, currency) == theirs
        assert amounts.from_stripe_amount(theirs, currency) == ours
        assert amounts.from_stripe_amount(theirs, currency.lower()) == ours


class TestTheRule:
    @pytest.mark.parametrize(
        ("currency", "minimum", "maximum", "step"),
        [
            ("GBP", 30, 99_999_999, 1),
            ("USD", 50, 99_999_999, 1),
            ("JPY", 50, 99_999_999, 1),
            ("KRW", 50, 99_999_999, 1),
            ("HUF", 17500, 99_999_999, 1),
            ("KWD", 1, 99_999_999, 10),
            ("ISK", 1, 999_999, 1),  # eight digits at Stripe, two of which are decimals
            ("UGX", 1, 999_999, 1),
            ("MGA", 100, 9_999_999_900, 100),
            ("CRC", 1, 99_999_999, 1),
        ],
    )
    def test_has_the_bounds_and_the_step_in_our_units(
        self, currency: str, minimum: int, maximum: int, step: int
    ) -> None:
        assert amounts.amount_rule(currency) == AmountRule(minimum=minimum, maximum=maximum, step=step)
