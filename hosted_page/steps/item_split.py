"""The part of the split form that splits the cost by item, with the units of each person. Rule split.by_item.

For each line, the browser sends one field with all numbers ("1 0 2"), or one field per person: the lead
first, then the mates.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from checkout import mate_shares
from checkout.models import Checkout
from checkout.split import item_amounts, split_amounts
from payments import money

ASSIGN = "assign"  # button that shows the numbers for one line
UNITS = "units-{line}"
_NUMBERS = re.compile(r"[0-9]{1,5}( [0-9]{1,5}){0,19}")


@dataclass(frozen=True)
class LineOfUnits:
    """A line of the order with the number of each person's units (`counts`), the lead first."""

    number: int
    name: str
    price: int
    quantity: int
    currency: str
    counts: list[int]
    is_open: bool

    @property
    def unit(self) -> str:
        """Price of one unit."""
        return money.display_for_payer(self.price, self.currency)

    @property
    def total(self) -> str:
        """Price of all units."""
        return money.display_for_payer(self.price * self.quantity, self.currency)

    @property
    def field(self) -> str:
        return UNITS.format(line=self.number)

    @property
    def free(self) -> int:
        """Number of units that no one has. It is never negative."""
        return max(0, self.quantity - sum(self.counts))

    @property
    def sent(self) -> str:
        """All numbers of the line, in the format of its hidden field."""
        return " ".join(map(str, self.counts))


class ItemSplit:
    """The units of each person, as typed or saved: `units[person][line]`, the lead first."""

    def __init__(self, checkout: Checkout, units: list[list[int]], *, opened: int = -1) -> None:
        self.checkout, self.units, self.opened = checkout, units, opened
        self.errors: list[str] = []
        self.illegible: set[int] = set()

    @classmethod
    def empty(cls, checkout: Checkout, people: int) -> "ItemSplit":
        """Return a split in which none of these people has units yet."""
        return cls(checkout, [[0] * len(checkout.bill) for _person in range(people)])

    @classmethod
    def from_form(cls, form: QueryDict, checkout: Checkout, people: int) -> "ItemSplit":
        """Return the split that was typed for this number of people. Text that is not a number counts as 0."""
        quantities = item_amounts.quantities(checkout.bill)
        columns = [
            _parse_counts(
                form.getlist(UNITS.format(line=line_number)) if quantities[line_number] else [], people
            )
            for line_number in range(len(checkout.bill))
        ]
        opened_text = form.get(ASSIGN, "")
        opened = int(opened_text) if opened_text.isdecimal() and len(opened_text) < 4 else -1
        legible = [column or [0] * people for column in columns]
        split = cls(checkout, [list(row) for row in zip(*legible, strict=True)], opened=opened)
        split.illegible = {line_number for line_number, column in enumerate(columns) if column is None}
        return split

    @classmethod
    def from_saved(
        cls, checkout: Checkout, mates: Sequence[Sequence[int]], free: Sequence[int]
    ) -> "ItemSplit":
        """Return the saved split. `mates` has the units of each mate, and `free` has the free units.

        The lead has all other units.
        """
        quantities = item_amounts.quantities(checkout.bill)
        others_units = item_amounts.add_units(*mates, free)
        return cls(
            checkout,
            [
                [quantity - count for quantity, count in zip(quantities, others_units, strict=True)],
                *map(list, mates),
            ],
        )

    @cached_property
    def is_offered(self) -> bool:
        """Whether the order has lines that people can take."""
        return item_amounts.can_split(self.checkout.bill)

    @cached_property
    def lines(self) -> list[LineOfUnits]:
        """The lines that people can take."""
        quantities = item_amounts.quantities(self.checkout.bill)
        return [
            LineOfUnits(
                number=number,
                name=item.name,
                price=item.unit_price,
                quantity=item.quantity,
                currency=self.checkout.currency,
                counts=[person[number] for person in self.units],
                is_open=number == self.opened,
            )
            for number, item in enumerate(self.checkout.bill)
            if quantities[number]
        ]

    @property
    def free(self) -> list[int]:
        """Units of each line that no one has. They are never negative."""
        quantities = item_amounts.quantities(self.checkout.bill)
        assigned = item_amounts.add_units(*self.units)
        return [max(0, quantity - count) for quantity, count in zip(quantities, assigned, strict=True)]

    @cached_property
    def costs(self) -> list[int]:
        """The cost of each mate, in minor units: for the mate's units and for a part of the shared lines."""
        return [self._amount(units) for units in self.units[1:]]

    @cached_property
    def free_cost(self) -> int:
        """The cost of the free units, in minor units."""
        return self._amount(self.free)

    @property
    def leads_cost(self) -> int:
        """The remaining amount, which the lead bears. It is negative if more units were typed than the order has."""
        return self.checkout.amount - sum(self.costs) - self.free_cost

    @property
    def remainder(self) -> int:
        """Amount by which the lead's amount exceeds the cost of the lead's own units."""
        return self.leads_cost - self._amount(self.units[0]) if self.is_offered else 0

    @property
    def shared(self) -> list[dict[str, Any]]:
        """The lines that no one takes, with their names and prices."""
        currency = self.checkout.currency
        return [
            {"name": item.name, "price": money.display_for_payer(item.quantity * item.unit_price, currency)}
            for item in self.checkout.bill
            if item_amounts.is_shared(item) and item.unit_price
        ]

    def check(self, names: Sequence[str]) -> dict[int, str]:
        """Check the units of the lead and of the mates with these names.

        Store the errors about lines in `errors`. Return the errors about mates, by their number. The first
        mate has the number 0.
        """
        if not self.is_offered:
            self.errors.append(_("This order cannot be shared by item."))
            return {}
        for line in self.lines:
            if line.number in self.illegible:
                self.errors.append(_("{item}: enter whole numbers.").format(item=line.name))
            if sum(line.counts) > line.quantity:
                error = _("{item}: the order has {count}. Reduce someone’s number.")
                self.errors.append(error.format(item=line.name, count=line.quantity))
        mate_errors = {number: self._mate_error(number, name) for number, name in enumerate(names)}
        if sum(map(bool, names)) + any(self.free) > split_amounts.MAX_PEOPLE - 1:
            error = _("At most {count} mates can share the cost, and free items count as one. Remove a mate.")
            self.errors.append(error.format(count=split_amounts.MAX_PEOPLE - 1))
        rule = mate_shares.amount_rule(self.checkout)
        if not self.errors and any(self.free) and not rule.allows(self.free_cost):
            self.errors.append(self._free_items_error(rule.minimum))
        if not self.errors and not any(any(units) for units in [*self.units[1:], self.free]):
            self.errors.append(_("Leave an item free for your mates, or tap “All mine”."))
        return {number: error for number, error in mate_errors.items() if error}

    def _free_items_error(self, minimum: int) -> str:
        words = _(
            "The free items cost {amount}. A card can be charged {minimum} or more. Assign them, or leave more free."
        )
        currency = self.checkout.currency
        return words.format(
            amount=money.display_for_payer(self.free_cost, currency),
            minimum=money.display_for_payer(minimum, currency),
        )

    def _mate_error(self, number: int, name: str) -> str:
        has_units = any(self.units[number + 1])
        if has_units and not name:
            return _("Enter a name.")
        if name and not has_units:
            return _("Give {name} an item, or remove the name.").format(name=name)
        rule, amount = mate_shares.amount_rule(self.checkout), self.costs[number]
        if has_units and amount < rule.minimum:
            currency = self.checkout.currency
            words = _("{missing} more is needed. A card can be charged {minimum} or more.")
            return words.format(
                missing=money.display_for_payer(rule.minimum - amount, currency),
                minimum=money.display_for_payer(rule.minimum, currency),
            )
        return ""

    def _amount(self, units: Sequence[int]) -> int:
        if not self.is_offered:
            return 0
        step = mate_shares.amount_rule(self.checkout).step
        return item_amounts.cost_of(self.checkout.bill, units, step=step).amount


def _parse_counts(values: Sequence[str], people: int) -> list[int] | None:
    """Return each person's number of units from a line's fields, or None if a field is not a number."""
    text = " ".join(part.strip() or "0" for part in values[:20]) or "0"
    if not _NUMBERS.fullmatch(text):
        return None
    return ([int(number) for number in text.split(" ")] + [0] * people)[:people]
