"""The collapsed lines on a bill for many people."""

from dataclasses import replace

import pytest

from checkout.models import Checkout
from config.lib import clock
from hosted_page.group import bill_lines, collapsed_lines
from hosted_page.group.collapsed_lines import CollapsedLine
from tests import mates
from tests.hosted_page.browsers import Payer, words

pytestmark = pytest.mark.django_db


def folded(order: Checkout, *, out: int, paid: int) -> list[CollapsedLine]:
    shares = mates.split(order, *[400] * (out + paid))
    lead, *asked = bill_lines.lines_of(order, shares, clock.now())
    return collapsed_lines.collapse(
        order, shares, [lead, *(replace(line, look="paid") for line in asked[:paid]), *asked[paid:]]
    )


class TestCollapsedLines:
    @pytest.mark.parametrize(("out", "paid", "used"), [(6, 2, []), (7, 3, ["out", "paid"]), (9, 0, ["out"])])
    def test_are_used_above_a_number_of_lines(
        self, unpaid: Checkout, out: int, paid: int, used: list[str]
    ) -> None:
        found = folded(unpaid, out=out, paid=paid)
        assert [fold.look for fold in found if fold.is_used] == used
        assert [fold.look for fold in found] == ["out", "paid"], "an open page may have each"

    def test_show_the_number_of_mates_and_their_amount(self, unpaid: Checkout) -> None:
        out, paid = folded(unpaid, out=7, paid=3)
        assert (out.mates, out.amount, str(out.words)) == ("7 mates", "£28.00", "Starts when confirmed")
        assert (paid.mates, paid.amount, str(paid.words)) == ("3 mates", "£12.00", "Paid")

    def test_are_not_on_a_short_bill(self, lead: Payer, order: Checkout) -> None:
        assert order.has_mates and "group-fold" not in words(lead.get())
