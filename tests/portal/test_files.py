"""CSV files for spreadsheets. No cell can run as a formula."""

import pytest

from portal import files

pytestmark = pytest.mark.django_db


class TestCell:
    @pytest.mark.parametrize(
        "text", ["=1+1", " =1+1", "+1", "-x", "-1+1", "@a", "\t=1", "\r=1", "\n=1", "＝1", "|a", "%0"]
    )
    def test_with_a_spreadsheet_formula_becomes_text(self, text: str) -> None:
        assert files.escape_cell(text) == f"'{text}"

    @pytest.mark.parametrize("value", ["-90.00", "12", 5, "x;=1+1", "a=b", ""])
    def test_with_numbers_or_words_is_unchanged(self, value: str | int) -> None:
        assert files.escape_cell(value) == value

    def test_is_always_quoted(self) -> None:
        written = files.csv_lines([["A;B"], ["x;=1+1", 5, 'say "hi"', None]])
        assert written == '"A;B"\r\n"x;=1+1","5","say ""hi""",""\r\n'
