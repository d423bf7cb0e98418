"""Describes the units of a share that is split by item, as a text and as lines with prices. Rule split.by_item."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from checkout import mate_shares
from checkout.models import Checkout
from checkout.split import item_amounts
from payments import money

NAMED_LINES = 3  # the text names this many lines, and only counts the others


@dataclass(frozen=True)
class ItemRow:
    """A row of a share's list: its units of one line, or its part of the shared lines."""

    name: str
    amount: str


def in_words(checkout: Checkout, units: Sequence[int]) -> str:
    """Return the units as a text, such as "2 × Standing ticket, 1 × Tour T-shirt", or "" if there are no units."""
    texts = [f"{count} × {line.name}" for line, count in zip(checkout.bill, units, strict=False) if count]
    # If only one line would remain, it is named too, so that the text never ends with "and 1 more item".
    if len(texts) <= NAMED_LINES + 1:
        return ", ".join(texts)
    further_count = len(texts) - NAMED_LINES
    words = ngettext("{items} and {count} more item", "{items} and {count} more items", further_count)
    return words.format(items=", ".join(texts[:NAMED_LINES]), count=further_count)


def rows_of(checkout: Checkout, units: Sequence[int]) -> list[ItemRow]:
    """Return the rows for these units and for their part of the shared lines. The rows add up to the share."""
    step = mate_shares.amount_rule(checkout).step
    cost = item_amounts.cost_of(checkout.bill, units, step=step)
    rows = [
        ItemRow(f"{count} × {line.name}", _display(checkout, count * line.unit_price))
        for line, count in zip(checkout.bill, units, strict=True)
        if count
    ]
    return rows + ([ItemRow(extras_label(checkout), _display(checkout, cost.extras))] if cost.extras else [])


def extras_label(checkout: Checkout) -> str:
    """Return the label of a person's part of the shared lines, such as "Booking fee, your part".

    If the order does not have exactly one shared line, the label says "Fees and discounts" instead of a name.
    """
    shared = [line.name for line in checkout.bill if item_amounts.is_shared(line) and line.unit_price]
    name = shared[0] if len(shared) == 1 else _("Fees and discounts")
    return _("{name}, your part").format(name=name)


def _display(checkout: Checkout, amount: int) -> str:
    return money.display_for_payer(amount, checkout.currency)
