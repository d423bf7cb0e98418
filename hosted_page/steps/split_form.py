"""The split form, and the functions that clean typed names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import QueryDict
from django.utils.formats import number_format
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from checkout import current_checkouts, mate_shares
from checkout.models import Checkout, Customer, PaymentRequest
from checkout.split import item_amounts, split_amounts
from checkout.split.share_rows import Share
from hosted_page.steps.item_split import ASSIGN, ItemSplit
from payments import money

ALL, EQUAL, OWN, BY_ITEM = "all", "equal", "own", "item"
FIRST = "first"  # value of `when`: mates pledge before the lead pays
REDRAW_BUTTONS = frozenset(("add", "names", "show", ASSIGN))  # buttons that only show the form again
ROWS = 2  # number of mates' lines that the form has at first, for own amounts
MAX_MATES = split_amounts.MAX_PEOPLE - 1
MAX_NAME = 60
EXAMPLE = 2400  # amount in an error message, in minor units
MAX_SHORT_NAME = 30  # maximum characters of a name that the lead and the mates see
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_PEOPLE = re.compile(r"[0-9]{1,3}")


def clean_name(text: str) -> str:
    """Return a person's name in a form that can be stored and shown: one line, at most 60 characters."""
    return _CONTROL.sub(" ", text).strip()[:MAX_NAME]


def clean_short_name(text: str) -> str:
    """Return at most 30 characters of a name, for display to the lead and the mates."""
    return clean_name(text)[:MAX_SHORT_NAME].strip()


@dataclass(frozen=True)
class Row:
    """A mate's line, as it was typed.

    `is_blamed` is true if the notice above the form is about this line's amount, perhaps together with the
    amounts of other lines.
    """

    position: int
    name: str = ""
    amount: str = ""
    error: str = ""
    is_blamed: bool = False

    @property
    def initial(self) -> str:
        """Text in the mate's circle: the first letter of the name, or the share's number if there is no name."""
        return self.name[:1].upper() or str(self.position)


class SplitForm:
    """The split: all mine, equally between 2 and 20 people, an amount for each mate, or by item.

    The values stay as they were typed. "All mine" is a button that overrides the other choices. Rule split.name.
    """

    def __init__(self, typed: QueryDict, checkout: Checkout) -> None:
        self.checkout, self._typed = checkout, typed
        self.choice = ALL if ALL in typed.getlist("split") else typed.get("split", "")
        self.typed_people = typed.get("people", "")
        self.your_name = clean_short_name(typed.get("your_name", ""))
        self.gets_everyone_in = typed.get("when") == FIRST and self.choice != ALL
        self.wants_names = "names" in typed or any(typed.getlist("name"))
        self.errors: dict[str, str] = {}
        names, amounts = typed.getlist("name"), typed.getlist("amount")
        self.rows = _rows_to_show(names, amounts, adds_row="add" in typed)
        self.adds_mate = "add" in typed
        self.has_too_many = any(text.strip() for text in [*names[MAX_MATES:], *amounts[MAX_MATES:]])

    @cached_property
    def items(self) -> ItemSplit:
        """The split by item, as it was typed. Only a form that shows or saves items reads the bill."""
        return ItemSplit.from_form(self._typed, self.checkout, len(self.rows) + 1)

    @classmethod
    def from_saved(cls, checkout: Checkout) -> SplitForm:
        """Return the form with the saved split of a checkout."""
        form = cls(QueryDict(), checkout)
        shares = current_checkouts.shares_of(checkout)
        form.choice = ALL if not shares else EQUAL
        form.typed_people = str(max(2, checkout.people or 2))
        form.your_name = clean_short_name(checkout.lead.name) if checkout.lead else ""
        if any(share.units for share in shares):
            form._read_items(shares)
        elif shares and [share.amount for share in shares] != _equal_amounts(checkout):
            form.choice = OWN
        if shares and form.choice != BY_ITEM:
            form.rows = [
                Row(
                    share.position,
                    share.name,
                    money.plain_amount(share.amount, checkout.currency) if form.choice == OWN else "",
                )
                for share in shares
            ]
            form.items = ItemSplit.empty(checkout, len(form.rows) + 1)
        form.wants_names = any(row.name for row in form.rows)
        return form

    def _read_items(self, shares: Sequence[PaymentRequest]) -> None:
        """Fill in a saved split by item: a row for each mate, and the free units."""
        now = current_checkouts.read_at(self.checkout)
        mates = [share for share in shares if share.units and not share.has_free_units(now)]
        free = item_amounts.add_units(
            *(share.units for share in shares if share.has_free_units(now)), [0] * len(self.checkout.bill)
        )
        self.choice = BY_ITEM
        self.rows = [Row(position, share.shown_name) for position, share in enumerate(mates, start=2)]
        self.items = ItemSplit.from_saved(self.checkout, [share.units for share in mates], free)

    @property
    def item_mates(self) -> int:
        """Number of mates' lines to show in a split by item: all used lines, and another one after "add mate"."""
        used = [row.position - 1 for row in self.rows if row.name or any(self.items.units[row.position - 1])]
        return min(MAX_MATES, max(used, default=0) + (1 if self.adds_mate else 0))

    @property
    def people(self) -> int:
        """Number of people in an equal split, or 2 if the typed text is not a number."""
        return self._typed_people() or 2

    def _typed_people(self) -> int | None:
        return int(self.typed_people) if _PEOPLE.fullmatch(self.typed_people) else None

    def is_valid(self) -> bool:
        """Return whether the form is valid. Store the errors in `errors` and in the rows."""
        if self.choice in (EQUAL, OWN, BY_ITEM) and not self.your_name:
            self.errors["your_name"] = _("Enter your name.")
        if self.choice == EQUAL:
            self._check_people()
        elif self.choice == OWN:
            self._check_rows()
        elif self.choice == BY_ITEM:
            self._check_items()
        elif self.choice != ALL:
            self.errors["split"] = _("Choose who pays.")
        return not self.errors

    def write(self) -> None:
        """Save the split for the person who was the lead when the order was read.

        Raises NotPayable, NotTheLead, mate_shares.TooLateToCollect, OperationInProgress.
        """
        lead = self.checkout.lead_id
        options: dict[str, Any] = {"lead": lead, "everyone_first": self.gets_everyone_in}
        if self.choice == OWN:
            mate_shares.split(self.checkout.pk, self._shares(), **options)
        elif self.choice == BY_ITEM:
            mates = [(row.name, self.items.units[row.position - 1]) for row in self.rows if row.name]
            mate_shares.split_by_item(self.checkout.pk, mates, self.items.free, **options)
        else:
            people = self.people if self.choice == EQUAL else 1
            names = [row.name for row in self.rows]
            mate_shares.split_equally(self.checkout.pk, people, names=names, **options)
        if self.your_name and self.choice != ALL and lead is not None:
            Customer.objects.filter(pk=lead).update(name=self.your_name)

    @property
    def amounts_by_person(self) -> list[tuple[str, int]]:
        """Amount that each person bears, with the person's letter or number for the bar. The lead is first.

        If the mates' amounts exceed the order's, the list is empty.
        """
        leads_initial = (self.your_name or _("You"))[:1].upper()
        if self.choice == OWN:
            mates = [(row.initial, self.typed_amounts.get(row.position, 0)) for row in self.rows]
            leads_amount = self.checkout.amount - sum(amount for _initial, amount in mates)
            return [(leads_initial, leads_amount), *mates] if leads_amount >= 0 else []
        if self.choice == BY_ITEM:
            costs = zip(self.rows, self.items.costs, strict=False)
            mates = [(row.initial, cost) for row, cost in costs]
            return [(leads_initial, max(0, self.items.leads_cost)), *mates, (_("Free"), self.items.free_cost)]
        people = min(self.people, mate_shares.max_people(self.checkout))
        step = mate_shares.amount_rule(self.checkout).step
        yours, each = split_amounts.equal_shares(self.checkout.amount, people, step=step)
        initials = {row.position: row.initial for row in self.rows}
        mates = [(initials.get(position, str(position)), each) for position in range(2, people + 1)]
        return [(leads_initial, yours), *mates]

    @property
    def typed_amounts(self) -> dict[int, int]:
        """Typed amounts in minor units, by position. Texts that are not amounts are left out."""
        return {position: amount for position, amount in self._amounts() if amount}

    def _check_people(self) -> None:
        maximum = mate_shares.max_people(self.checkout)
        if maximum < 2:
            self.errors["people"] = _("This order is too small to share equally.")
        elif not 2 <= (self._typed_people() or 0) <= maximum:
            self.errors["people"] = _("Choose between 2 and {maximum} people.").format(maximum=maximum)

    def _check_items(self) -> None:
        mate_errors = self.items.check([row.name for row in self.rows])
        self.rows = [replace(row, error=mate_errors.get(row.position - 2, "")) for row in self.rows]
        if self.has_too_many:
            self.errors["rows"] = _too_many_mates_text()
        elif self.items.errors or mate_errors:
            self.errors["rows"] = " ".join(self.items.errors) or _("Check who has what.")

    def _check_rows(self) -> None:
        amounts = dict(self._amounts())
        self.rows = [
            Row(row.position, row.name, row.amount, self._row_error(row, amounts.get(row.position)))
            for row in self.rows
        ]
        if self.has_too_many:
            self.errors["rows"] = _too_many_mates_text()
        elif not amounts:
            self.errors["rows"] = _("Enter an amount for at least one mate, or tap “All mine”.")
            self._mark_blamed(self.rows[0].position)
        elif any(row.error for row in self.rows):
            self.errors["rows"] = _("Check the amounts.")
        else:
            excess = sum(amount or 0 for amount in amounts.values()) - self.checkout.amount
            if excess > 0:
                more = money.display_for_payer(excess, self.checkout.currency)
                self.errors["rows"] = _("{more} more than the order. Reduce a share.").format(more=more)
                self._mark_blamed(*self.typed_amounts)

    def _mark_blamed(self, *positions: int) -> None:
        self.rows = [replace(row, is_blamed=row.position in positions) for row in self.rows]

    def _row_error(self, row: Row, amount: int | None) -> str:
        currency = self.checkout.currency
        if not row.name and not row.amount:
            return ""
        if not amount:
            example = number_format(money.plain_amount(EXAMPLE, currency))
            return _("Enter an amount, such as {example}.").format(example=example)
        rule = mate_shares.amount_rule(self.checkout)
        if amount < rule.minimum:
            return _("Enter at least {minimum}.").format(
                minimum=money.display_for_payer(rule.minimum, currency)
            )
        if amount % rule.step:
            return _("Enter a multiple of {step}.").format(step=money.display_for_payer(rule.step, currency))
        return ""

    def _amounts(self) -> list[tuple[int, int | None]]:
        """Return the position and the amount of each row that has a value. If the amount is invalid, it is None."""
        return [
            (row.position, money.parse(row.amount, self.checkout.currency))
            for row in self.rows
            if row.name or row.amount
        ]

    def _shares(self) -> list[Share]:
        names: Mapping[int, str] = {row.position: row.name for row in self.rows}
        return [Share(amount, names[position]) for position, amount in self._amounts() if amount]


def _too_many_mates_text() -> str:
    words = _("At most {maximum} mates can share the cost. The others were left out. Check the amounts.")
    return words.format(maximum=MAX_MATES)


def _rows_to_show(names: Sequence[str], amounts: Sequence[str], *, adds_row: bool) -> list[Row]:
    """Return the typed lines, at most nineteen.

    If there are fewer than two, add empty lines. If `adds_row` is true, add another empty line.
    """
    count = min(MAX_MATES, max(ROWS, len(names), len(amounts)) + (1 if adds_row else 0))
    filled = [
        (names[index] if index < len(names) else "", amounts[index] if index < len(amounts) else "")
        for index in range(count)
    ]
    return [
        Row(position, clean_short_name(name), amount.strip()[:20])
        for position, (name, amount) in enumerate(filled, start=2)
    ]


def _equal_amounts(checkout: Checkout) -> list[int]:
    each = mate_shares.equal_share(checkout, checkout.people or 1)
    return [each] * ((checkout.people or 1) - 1)
