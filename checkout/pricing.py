"""The arithmetic of an order: the sum of its items, and the signs of their prices. Pure."""

from collections.abc import Sequence
from typing import TypedDict

SUBTRACTING = "discount"


class Line(TypedDict):
    """The part of an item that pricing needs; the price in minor units."""

    quantity: int
    unit_price: int


class InvalidAmountArithmetic(Exception):
    """The lines do not add up to the total."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"The items add up to {expected}, but total_amount is {actual}.")
        self.expected, self.actual = expected, actual


def wrong_sign(unit_price: int, category: str) -> str | None:
    """Return in a sentence what is wrong with a price's sign, or None: only discounts subtract (rule create.signs)."""
    if category == SUBTRACTING and unit_price >= 0:
        return "Must be negative on a discount."
    if category != SUBTRACTING and unit_price < 0:
        return "Only a discount may be negative: use category discount."
    return None


def check_total(lines: Sequence[Line], total_amount: int) -> None:
    """Raise InvalidAmountArithmetic unless quantity × unit price of all lines is the total. Rule create.arithmetic."""
    expected = sum(line["quantity"] * line["unit_price"] for line in lines)
    if expected != total_amount:
        raise InvalidAmountArithmetic(expected, total_amount)
