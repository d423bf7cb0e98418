"""Minor units are ISO 4217's, whatever people make of a currency day by day."""

import pytest

from payments import money

NONE = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
THREE = "BHD IQD JOD KWD LYD OMR TND"


@pytest.mark.rule("money.minor_units")
class TestMinorUnits:
    def test_are_those_of_iso_4217(self) -> None:
        ours = {code: money.minor_digits(code) for code in money.currencies()}
        assert ours == {code: 0 if code in NONE else 3 if code in THREE else 2 for code in ours}
        assert ours.keys() >= {*NONE.split(), *THREE.split(), "GBP", "EUR", "RSD", "LBP"}

    @pytest.mark.parametrize(
        ("amount", "currency", "shown"),
        [
            (9550, "GBP", "£95.50"),
            (-150, "GBP", "\N{MINUS SIGN}£1.50"),
            (500, "JPY", "JP¥500"),
            (1234567, "KWD", "KWD1,234.567"),
            (250000, "RSD", "RSD2,500.00"),
            (1500, "IQD", "IQD1.500"),
        ],
    )
    def test_are_shown_and_read_again(self, amount: int, currency: str, shown: str) -> None:
        assert money.display(amount, currency) == shown
        if amount > 0:
            assert money.parse(money.plain(amount, currency), currency) == amount
