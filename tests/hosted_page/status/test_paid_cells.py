"""The texts for a paid order must be true for each viewer."""

import string

import pytest

from hosted_page.status.cells import Cell, Situation, Viewer
from hosted_page.status.paid_cells import PAID, RETURNED

pytestmark = pytest.mark.rule("page.viewer")
TABLE = PAID | RETURNED
KNOWN = {"shop", "amount", "card", "name", "until", "each", "returned"}


def words_of(cell: Cell) -> str:
    """Return all texts of a cell."""
    parts = [part for words in cell.money for part in (words if isinstance(words, tuple) else (words,))]
    return " ".join(str(part) for part in (cell.headline, *parts, cell.note))


@pytest.mark.parametrize("situation", TABLE)
def test_words_fit_the_person_who_reads_them(situation: Situation) -> None:
    for viewer, cell in TABLE[situation].items():
        words = words_of(cell)
        if viewer in (Viewer.LEAD, Viewer.PAID):
            assert "not been charged" not in words
        if viewer in (Viewer.ORDER_LINK, Viewer.PAY_LINK, Viewer.GROUP_LINK):
            assert "our money" not in words and "You paid" not in words and "your card" not in words
        assert {name for _, name, _, _ in string.Formatter().parse(words) if name} <= KNOWN
