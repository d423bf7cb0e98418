"""If a cost is split by item, each person pays for their units and for a part of the shared lines."""

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkout.models import Item
from checkout.split import item_amounts

STEPS = {"JPY": 1, "GBP": 1, "ISK": 100, "KWD": 10}  # currencies with 0, 2 and 3 decimals, and their steps


def line(quantity: int, price: int, category: str = "ticket") -> Item:
    return Item("ref", "A thing", quantity, price, "GBP", category, None)


TICKETS = [line(4, 2250), line(2, 1800, "other"), line(1, 900, "other"), line(1, 700, "fee")]


@pytest.mark.rule("split.by_item")
class TestCost:
    @pytest.mark.parametrize(
        ("units", "goods", "extras"),
        [([1, 1, 0, 0], 4050, 210), ([1, 0, 0, 0], 2250, 116), ([2, 0, 0, 0], 4500, 233), ([0] * 4, 0, 0)],
    )
    def test_includes_the_proportion_of_the_fees(self, units: list[int], goods: int, extras: int) -> None:
        assert item_amounts.cost_of(TICKETS, units, step=1) == (goods, extras)

    def test_a_discount_reduces_it_and_is_rounded_down_too(self) -> None:
        lines = [line(3, 1000), line(1, -100, "discount")]
        assert item_amounts.cost_of(lines, [1, 0], step=1).amount == 966

    def test_is_rounded_down_to_the_step_of_the_currency(self) -> None:
        assert item_amounts.cost_of(TICKETS, [1, 0, 0, 0], step=100).amount == 2300

    def test_an_order_of_only_fees_or_free_goods_cannot_be_split_by_item(self) -> None:
        assert not item_amounts.can_split([line(1, 700, "fee")])
        assert not item_amounts.can_split([line(1, 0), line(1, 700, "fee")])
        assert item_amounts.can_split([line(1, 1)])

    def test_no_one_takes_a_fee_or_a_line_that_costs_nothing(self) -> None:
        assert item_amounts.quantities([*TICKETS, line(5, 0), line(3, 1)]) == [4, 2, 1, 0, 0, 3]


@pytest.mark.rule("split.by_item")
class TestUnits:
    @pytest.mark.parametrize(
        "people", [[[5, 0, 0, 0]], [[4, 0, 0, 0], [1, 0, 0, 0]], [[0, 0, 0, 1]], [[1, 1]], [[-1, 0, 0, 0]]]
    )
    def test_beyond_those_of_the_order_are_refused(self, people: list[list[int]]) -> None:
        with pytest.raises(ValueError, match=r"units|number"):
            item_amounts.check_units(TICKETS, people)

    def test_of_the_whole_order_are_accepted(self) -> None:
        item_amounts.check_units(TICKETS, [[3, 2, 0, 0], [1, 0, 1, 0]])

    def test_for_another_number_of_lines_are_refused(self) -> None:
        with pytest.raises(ValueError, match="argument 2 is longer"):
            item_amounts.cost_of(TICKETS, [1, 1], step=1)
        with pytest.raises(ValueError, match="argument 2 is longer"):
            item_amounts.add_units([1], [1, 1])

    def test_of_an_order_of_fees_are_refused(self) -> None:
        with pytest.raises(ValueError, match="no lines"):
            item_amounts.check_units([line(1, 700, "fee")], [[0]])


@st.composite
def splits(draw: st.DrawFn) -> tuple[list[Item], list[list[int]], int]:
    """Draw an order's lines, the units that each of two to six people takes, and a step.

    Together, the people take all units.
    """
    price = st.integers(0, 100_000_00)
    lines = draw(st.lists(st.builds(line, st.integers(1, 1000), price), min_size=1, max_size=6))
    shared = st.sampled_from(["fee", "shipping", "tax"])
    lines += draw(st.lists(st.builds(line, st.integers(1, 3), st.integers(0, 50_00), shared), max_size=3))
    goods = sum(one.quantity * one.unit_price for one in lines if not item_amounts.is_shared(one))
    lines.append(line(1, -draw(st.integers(0, goods)), "discount"))
    people = draw(st.integers(2, 6))
    held: list[list[int]] = [[] for _person in range(people)]
    for quantity in item_amounts.quantities(lines):
        cuts = sorted(draw(st.lists(st.integers(0, quantity), min_size=people - 1, max_size=people - 1)))
        for person, (low, high) in enumerate(zip([0, *cuts], [*cuts, quantity], strict=True)):
            held[person].append(high - low)
    return lines, held, draw(st.sampled_from(sorted(STEPS.values())))


def exact(lines: Sequence[Item], units: Sequence[int]) -> Fraction:
    """Return the exact cost of these units, including their part of the shared lines."""
    goods = sum(count * one.unit_price for count, one in zip(units, lines, strict=True))
    whole = sum(one.quantity * one.unit_price for one in lines if not item_amounts.is_shared(one))
    total = sum(one.quantity * one.unit_price for one in lines)
    return Fraction(goods * total, whole)


@pytest.mark.rule("split.by_item")
class TestProperties:
    @given(splits())
    @settings(max_examples=300)
    def test_each_bears_the_proportion_to_within_a_step_and_the_lead_is_left_with_no_debt(
        self, split: tuple[list[Item], list[list[int]], int]
    ) -> None:
        lines, people, step = split
        if not item_amounts.can_split(lines):
            return
        total = sum(one.quantity * one.unit_price for one in lines)
        amounts = [item_amounts.cost_of(lines, units, step=step).amount for units in people]
        for units, amount in zip(people, amounts, strict=True):
            assert amount % step == 0
            assert 0 <= exact(lines, units) - amount < step
        assert 0 <= total - sum(amounts) < step * len(people)

    @given(splits())
    @settings(max_examples=100)
    def test_two_people_bear_no_more_than_one_person_with_the_units_of_both(
        self, split: tuple[list[Item], list[list[int]], int]
    ) -> None:
        lines, (first, second, *_others), step = split
        if not item_amounts.can_split(lines):
            return
        apart = sum(item_amounts.cost_of(lines, units, step=step).amount for units in (first, second))
        both = item_amounts.cost_of(lines, item_amounts.add_units(first, second), step=step).amount
        assert 0 <= both - apart <= step
