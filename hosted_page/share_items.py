"""The units of a share that is split by item, in words and as lines with prices. Rule split.by_item."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from checkout import mate_shares
from checkout.models import Checkout
from checkout.split import item_amounts
from payments import money

SHOWN = 3  # number of lines that are named in a text


@dataclass(frozen=True)
class ItemRow:
    """A row of a share: its units of a line, or its part of the shared lines."""

    name: str
    amount: str


def in_words(checkout: Checkout, units: Sequence[int]) -> str:
    """Return units as a text, such as "2 × Standing ticket, 1 × Tour T-shirt", "" if there are none."""
    taken = [f"{count} × {line.name}" for line, count in zip(checkout.bill, units, strict=False) if count]
    if len(taken) <= SHOWN + 1:
        return ", ".join(taken)
    left = len(taken) - SHOWN
    more = ngettext("{items} and {count} more item", "{items} and {count} more items", left)
    return more.format(items=", ".join(taken[:SHOWN]), count=left)


def rows_of(checkout: Checkout, units: Sequence[int]) -> list[ItemRow]:
    """Return the rows of these units and of their part of the shared lines. Together, they are the share."""
    step = mate_shares.amount_rule(checkout).step
    cost = item_amounts.cost_of(checkout.bill, units, step=step)
    rows = [
        ItemRow(f"{count} × {line.name}", _display(checkout, count * line.unit_price))
        for line, count in zip(checkout.bill, units, strict=True)
        if count
    ]
    return rows + ([ItemRow(extras_label(checkout), _display(checkout, cost.extras))] if cost.extras else [])


def extras_label(checkout: Checkout) -> str:
    """Return what to call somebody's part of the shared lines: their name if there is one, else "extras"."""
    shared = [line.name for line in checkout.bill if item_amounts.is_shared(line) and line.unit_price]
    name = shared[0] if len(shared) == 1 else _("Fees and discounts")
    return _("{name}, your part").format(name=name)


def _display(checkout: Checkout, amount: int) -> str:
    return money.display_for_payer(amount, checkout.currency)
