"""The texts for an unpaid order make no promise about money that has already moved."""

import pytest

from hosted_page.status.cells import Situation
from hosted_page.status.unpaid_cells import UNPAID

pytestmark = pytest.mark.rule("page.viewer")


@pytest.mark.parametrize("situation", UNPAID)
def test_an_unpaid_order_is_never_called_paid_or_refunded(situation: Situation) -> None:
    for cell in UNPAID[situation].values():
        said = f"{cell.headline} {cell.money}"
        assert "refund" not in said and "Confirmed and paid" not in said
        assert cell.place != "shop" and (cell.is_live or not cell.title)
