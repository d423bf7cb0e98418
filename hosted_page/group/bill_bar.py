"""The bar on the lead's bill, and the sums below it. Each person's part is as wide as the person's amount is large."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from checkout.current_checkouts import Split
from checkout.models import Checkout, PaymentRequest
from checkout.states import SHARE_PAID
from hosted_page import share_bar
from hosted_page.group import group_members
from hosted_page.group.bill_lines import Line, OutsideEvents
from hosted_page.group.line_looks import ICON_ON_BAR
from payments import money

# If at least this many people share the cost, the bar shows no letters.
NO_LETTERS_FROM = 9
# The smallest width, in per cent of the bar, that has room for the word "You".
YOU_WIDTH = 12


@dataclass(frozen=True)
class Part:
    """A part of the bar. `x` and `width` are its start and its width in per cent of the bar.

    `person` is the number of the person's colour, or 0 if the look has its own colour.
    """

    look: str
    person: int
    letters: str
    icon: str
    is_lead: bool = False
    x: str = ""
    width: str = ""


def parts_of(
    checkout: Checkout, shares: Sequence[PaymentRequest], all_lines: Sequence[Line], returned: int
) -> list[Part]:
    """Return the parts of the bar. A person whose amount is 0 has no part.

    If banks have returned an amount to mates (`returned`), a part without a name shows it. The paid shares then
    have one common part, so that the bar does not show which mate got money back (rule dispute.lost).
    """
    own = checkout.amount - sum(share.amount for share in shares)
    amounts = [own, *(share.amount for share in shares)]
    rows = [(_part_of(line), amount) for line, amount in zip(all_lines, amounts, strict=True)]
    if returned:
        rows = _merge_paid_shares(shares, rows, returned)
    is_large = len(all_lines) >= NO_LETTERS_FROM
    drawn = zip(rows, share_bar.places([amount for _, amount in rows]), strict=True)
    return [_place(part, x, width, is_large=is_large) for (part, _), (x, width) in drawn if width]


def _part_of(line: Line) -> Part:
    letters = _("You") if line.is_lead else line.initial
    icon = "ring" if line.look == "taken" else ICON_ON_BAR.get(line.status, "")
    return Part(line.look, line.person, letters, icon, is_lead=line.is_lead)


def _merge_paid_shares(
    shares: Sequence[PaymentRequest], rows: Sequence[tuple[Part, int]], returned: int
) -> list[tuple[Part, int]]:
    """Return the rows with one row for all paid shares, and one for the amount that banks returned to mates."""
    lead, *mates = rows
    unpaid = [row for row, share in zip(mates, shares, strict=True) if share.status not in SHARE_PAID]
    paid = sum(share.amount for share in shares if share.status in SHARE_PAID) - returned
    return [lead, *unpaid, (Part("paid", 2, "", "check"), paid), (Part("returned", 0, "", "back"), returned)]


def _place(part: Part, x: float, width: float, *, is_large: bool) -> Part:
    """Return the part at its place. If it is too narrow for its letters and its icon, leave them out."""
    has_room = not is_large and width >= (YOU_WIDTH if part.is_lead else group_members.ROOM)
    placed = replace(part, x=f"{x:.3f}", width=f"{width:.3f}")
    return placed if has_room else replace(placed, letters="", icon="")


def labelled_sums(borne: Split, events: OutsideEvents, currency: str) -> list[dict[str, str]]:
    """Return the bill's amounts with their labels. The amounts add up to the order's total.

    If a bank returned an amount to a mate, it no longer counts as paid by a mate. If mates have paid no other
    amount, the sum of their payments is left out.
    """
    returned = events.returned_to_mates
    amounts = {"mine": borne.yours, "out": borne.out, "paid": borne.paid - returned}
    if returned and not amounts["paid"]:
        del amounts["paid"]
    labels = {"mine": _("Yours"), "out": _("Still due"), "paid": _("Mates paid"), "ended": _("Refunded")}
    labels["returned"] = _("Returned to a mate")
    amounts |= {"ended": events.outside} if events.outside else {}
    amounts |= {"returned": returned} if returned else {}
    return [
        {"look": look, "label": labels[look], "amount": money.display_for_payer(amount, currency)}
        for look, amount in amounts.items()
    ]
