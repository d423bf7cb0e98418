"""Amounts use the minor units of ISO 4217, even where people use a different number of decimals."""

import re
from pathlib import Path

import pytest
from django.utils import translation

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
            (500, "JPY", "JP¥500"),  # a merchant's list can contain several currencies that use the sign ¥
            (1234567, "KWD", "KWD1,234.567"),
            (250000, "RSD", "RSD2,500.00"),
            (1500, "IQD", "IQD1.500"),
        ],
    )
    def test_are_formatted_and_parsed_back(self, amount: int, currency: str, shown: str) -> None:
        assert money.display(amount, currency) == shown
        if amount > 0:
            assert money.parse(money.plain_amount(amount, currency), currency) == amount


@pytest.mark.rule("create.currency")
def test_currencies_in_use_are_those_of_iso_4217() -> None:
    in_use = money.currencies()
    assert {"EUR", "VES", "VED", "SLE", "XCG", "ZWG"} <= in_use
    assert in_use.isdisjoint({"BGN", "HRK", "ANG", "SLL", "ZWL", "XXX", "XAU"})


@pytest.mark.rule("page.signs")
class TestPayers:
    @pytest.mark.parametrize(
        ("language", "amount", "currency", "shown"),
        [
            ("en-gb", 9550, "GBP", "£95.50"),
            ("en-gb", -9060, "USD", "\N{MINUS SIGN}$90.60"),
            ("en-gb", 500, "JPY", "¥500"),
            ("en-gb", 9550, "SEK", "kr 95.50"),
            ("en-gb", 1234567, "KWD", "KWD 1,234.567"),
            ("fr", 9550, "GBP", "95,50 £"),
            ("fr", 9060, "USD", "90,60 $"),
            ("fr", 9060, "CAD", "90,60 $"),
            ("fr", 9060, "EUR", "90,60 €"),
            ("de", 9550, "GBP", "95,50 £"),
            ("de", 123450, "EUR", "1.234,50 €"),
            ("nl", 9550, "GBP", "£ 95,50"),
            ("nl", -9550, "EUR", "€ \N{MINUS SIGN}95,50"),
            ("es", 9550, "GBP", "95,50 £"),
            ("es", 123450, "MXN", "1234,50 $"),
            ("es", 1234567, "EUR", "12.345,67 €"),
            ("it", 9550, "GBP", "95,50 £"),
            ("it", -123450, "EUR", "\N{MINUS SIGN}1234,50 €"),
        ],
    )
    def test_see_only_the_currency_sign(self, language: str, amount: int, currency: str, shown: str) -> None:
        with translation.override(language):
            assert money.display_for_payer(amount, currency).replace("\N{NO-BREAK SPACE}", " ") == shown

    def test_see_signs_only_for_currencies_in_use(self) -> None:
        assert set(money.NARROW_SYMBOLS) <= money.currencies()

    def test_see_amounts_in_this_format_on_all_their_pages(self) -> None:
        pages = [*Path("hosted_page").rglob("*.py"), Path("payments/providers/sandbox/views.py")]
        assert len(pages) > 10
        assert [str(page) for page in pages if re.search(r"money\.display\b", page.read_text())] == []
