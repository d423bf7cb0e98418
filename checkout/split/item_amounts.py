"""Calculations for a split by item, in minor units. No function has side effects. Rule split.by_item.

`units` is a list with one number for each order line: how many units of this line a person takes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from checkout.models import Item

# Lines of these categories are shared: each person bears a part in proportion to the cost of their units.
SHARED = frozenset(("fee", "shipping", "tax", "discount"))


class Cost(NamedTuple):
    """The amount that a person bears, in minor units: for their units, and for their part of the shared lines."""

    goods: int
    extras: int

    @property
    def amount(self) -> int:
        return self.goods + self.extras


class Sums(NamedTuple):
    """The cost in minor units of the lines whose units people take, and the cost of the shared lines."""

    goods: int
    shared: int


def sums(lines: Sequence[Item]) -> Sums:
    """Return the cost of the lines whose units people take, and the cost of the shared lines, which can be negative."""
    shared = sum(line.quantity * line.unit_price for line in lines if is_shared(line))
    return Sums(sum(line.quantity * line.unit_price for line in lines) - shared, shared)


def is_shared(line: Item) -> bool:
    """Return whether a line is a fee, shipping, a tax or a discount."""
    return line.category in SHARED


def can_split(lines: Sequence[Item]) -> bool:
    """Return whether an order can be split by item: the lines that are not shared must cost more than 0."""
    return sums(lines).goods > 0


def quantities(lines: Sequence[Item]) -> list[int]:
    """Return how many units of each line people can take. It is 0 for a shared line and for a line that costs 0."""
    return [0 if is_shared(line) or line.unit_price <= 0 else line.quantity for line in lines]


def check_units(lines: Sequence[Item], people: Sequence[Sequence[int]]) -> None:
    """Raise ValueError if these people together take more units than the order has."""
    if not can_split(lines):
        raise ValueError("This order has no lines to take.")
    available = quantities(lines)
    if any(len(units) != len(available) or min(units) < 0 for units in people):
        raise ValueError("Each person needs a number of units for each line.")
    if any(taken > most for taken, most in zip(add_units(*people), available, strict=True)):
        raise ValueError("More units are taken than the order has.")


def cost_of(lines: Sequence[Item], units: Sequence[int], *, step: int) -> Cost:
    """Return the cost for a person who takes these units, rounded down to a multiple of `step`.

    `can_split` must be true for the order. The sum of the costs of all people is never higher than the order's
    amount. The lead bears the rest.
    """
    goods = sum(count * line.unit_price for count, line in zip(units, lines, strict=True))
    whole = sums(lines)
    amount = (goods + whole.shared * goods // whole.goods) // step * step
    return Cost(goods, amount - goods)


def add_units(*parts: Sequence[int]) -> list[int]:
    """Return how many units of each line these people take together."""
    return [sum(counts) for counts in zip(*parts, strict=True)]
