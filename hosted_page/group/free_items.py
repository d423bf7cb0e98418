"""The form on the group page to take some of the free units, and the reasons why they were not taken.

Rule split.free_units.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from checkout import current_checkouts, mate_shares
from checkout.group import share_claims, unit_claims
from checkout.models import Checkout, PaymentRequest
from checkout.split import item_amounts
from hosted_page import share_items
from hosted_page.steps.item_split import UNITS
from payments import money


@dataclass(frozen=True)
class FreeLine:
    """A line of the order with free units, and how many of them this person has chosen."""

    field: str
    name: str
    unit: str
    price: int
    free: int
    chosen: int


class ItemsNotTaken(Exception):
    """The chosen units were not taken. `kind` is the reason that the page shows: "name", "items" or "taken"."""

    def __init__(self, kind: str, title: str, words: str = "") -> None:
        super().__init__(title)
        self.kind, self.title, self.words = kind, title, words


def chosen_units(form: QueryDict, checkout: Checkout) -> list[int]:
    """Return how many units of each line the person chose. Text that is not a number counts as 0."""
    texts = [form.get(UNITS.format(line=number), "").strip() for number in range(len(checkout.bill))]
    return [int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0 for text in texts]


def take(
    checkout: Checkout, units: Sequence[int], *, claim: str, name: str, admit: Callable[[], None]
) -> PaymentRequest:
    """Take these units for a browser, as `unit_claims.take_units` does. Raises ItemsNotTaken."""
    if not any(units):
        raise ItemsNotTaken("items", _("Choose your items"))
    try:
        return unit_claims.take_units(checkout.pk, units, claim=claim, name=name, admit=admit)
    except share_claims.NameMissing:
        raise ItemsNotTaken("name", _("Enter your name.")) from None
    except unit_claims.TooSmall as error:
        raise _too_small(checkout, error.missing) from None
    except unit_claims.NoPlaceLeft:
        words = _("Only one more person can join. That person takes everything that is left.")
        raise ItemsNotTaken("items", _("Take all items that are left"), words) from None


def _too_small(checkout: Checkout, missing: int) -> ItemsNotTaken:
    if missing <= 0:
        return ItemsNotTaken("items", _("A card cannot be charged this amount. Choose other items."))
    amount = money.display_for_payer(missing, checkout.currency)
    minimum = money.display_for_payer(mate_shares.amount_rule(checkout).minimum, checkout.currency)
    return ItemsNotTaken(
        "items",
        _("{missing} more is needed").format(missing=amount),
        _("A card can be charged {minimum} or more. Add an item.").format(minimum=minimum),
    )


def form_context(
    checkout: Checkout, shares: Sequence[PaymentRequest], units: Sequence[int]
) -> dict[str, Any] | None:
    """Return the context of the form, or None if no units are free.

    `units` has the number of units that the person chose of each line, or is () at first. Units that are no
    longer free are subtracted, and the notice `lost` says this.
    """
    free = unit_claims.free_units(shares, current_checkouts.read_at(checkout))
    if not any(free):
        return None
    chosen = [min(count, available) for count, available in zip(units or [0] * len(free), free, strict=True)]
    step, currency = mate_shares.amount_rule(checkout).step, checkout.currency
    amount = item_amounts.cost_of(checkout.bill, chosen, step=step).amount
    return {
        "lines": _free_lines(checkout, free, chosen),
        "rows": share_items.rows_of(checkout, chosen) if any(chosen) else [],
        "count": sum(chosen),
        "amount": money.display_for_payer(amount, currency),
        "extras_label": share_items.extras_label(checkout),
        "lost": _lost_units(checkout, units, free) if units else None,
        "digits": money.minor_digits(currency),
        "currency": currency,
        "step": step,
        **item_amounts.sums(checkout.bill)._asdict(),
    }


def _free_lines(checkout: Checkout, free: Sequence[int], chosen: Sequence[int]) -> list[FreeLine]:
    return [
        FreeLine(
            UNITS.format(line=number),
            item.name,
            money.display_for_payer(item.unit_price, checkout.currency),
            item.unit_price,
            free[number],
            chosen[number],
        )
        for number, item in enumerate(checkout.bill)
        if free[number]
    ]


def lost_notice(items: dict[str, Any] | None) -> dict[str, str]:
    """Return the notice for a person whose units other people took. `items` is the form's context."""
    default = {"title": _("These items were just taken"), "words": ""}
    return {"tone": "move", "icon": "ring", **((items and items["lost"]) or default)}


def _lost_units(checkout: Checkout, units: Sequence[int], free: Sequence[int]) -> dict[str, str] | None:
    """Return a notice about the first line whose chosen units other people took, or None if there is no such line."""
    for item, count, available in zip(checkout.bill, units, free, strict=True):
        if count > available == 0:
            return {"title": _("{item} was just taken").format(item=item.name), "words": ""}
        if count > available:
            title = _("Only {count} {item} is left") if available == 1 else _("Only {count} {item} are left")
            words = _("Someone has just taken the others. Your choice is now {count}.")
            return {
                "title": title.format(count=available, item=item.name),
                "words": words.format(count=available),
            }
    return None
