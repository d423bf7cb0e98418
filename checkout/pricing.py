"""The arithmetic of an order. Pure."""

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

SUBTRACTING = "discount"


class Line(TypedDict):
    """What pricing needs to know of an item."""

    quantity: int
    unit_price: int
    currency: str
    category: str


class Problem(NamedTuple):
    """What is wrong with one field, in a sentence."""

    param: str
    message: str


class InvalidAmountArithmetic(Exception):
    """The lines do not add up to the total."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"The items add up to {expected}, but total_amount is {actual}.")
        self.expected, self.actual = expected, actual


def problems(lines: Sequence[Line], currency: str) -> list[Problem]:
    """Return what is wrong with the lines one by one: foreign currencies and misplaced signs."""
    found = []
    for position, line in enumerate(lines):
        if line["currency"] != currency:
            found.append(Problem(f"items[{position}].currency", f"Must be {currency}, as the checkout's."))
        discount = line["category"] == SUBTRACTING
        if discount and line["unit_price"] >= 0:
            found.append(Problem(f"items[{position}].unit_price", "Must be negative on a discount."))
        if not discount and line["unit_price"] < 0:
            found.append(
                Problem(
                    f"items[{position}].unit_price", "Only a discount may be negative: use category discount."
                )
            )
    return found


def check_total(lines: Sequence[Line], total_amount: int) -> None:
    """Raise InvalidAmountArithmetic unless quantity × unit price of all lines is the total. SPEC.md 7."""
    expected = sum(line["quantity"] * line["unit_price"] for line in lines)
    if expected != total_amount:
        raise InvalidAmountArithmetic(expected, total_amount)
