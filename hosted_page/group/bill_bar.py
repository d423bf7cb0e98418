"""The bar on the lead's bill, and the sums below it. Each person's part is as wide as the person's amount is large."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from checkout.current_checkouts import Split
from checkout.models import Checkout, PaymentRequest
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
    """One person's part of the bar. `x` and `width` are its start and its width in per cent of the bar."""

    line: Line
    x: str
    width: str
    letters: str
    icon: str


def parts_of(checkout: Checkout, shares: Sequence[PaymentRequest], all_lines: Sequence[Line]) -> list[Part]:
    """Return the parts of the bar. A person whose amount is 0 has no part."""
    amounts = [checkout.amount - sum(share.amount for share in shares), *(share.amount for share in shares)]
    drawn = zip(all_lines, share_bar.places(amounts), strict=True)
    is_large = len(all_lines) >= NO_LETTERS_FROM
    return [_part_of(line, x, width, is_large=is_large) for line, (x, width) in drawn if width]


def _part_of(line: Line, x: float, width: float, *, is_large: bool) -> Part:
    letters = _("You") if line.is_lead else line.initial
    has_room = not is_large and width >= (YOU_WIDTH if line.is_lead else group_members.ROOM)
    return Part(
        line=line,
        x=f"{x:.3f}",
        width=f"{width:.3f}",
        letters=letters if has_room else "",
        icon=_icon_of(line) if has_room else "",
    )


def _icon_of(line: Line) -> str:
    return "ring" if line.look == "taken" else ICON_ON_BAR.get(line.status, "")


def labelled_sums(borne: Split, events: OutsideEvents, currency: str) -> list[dict[str, str]]:
    """Return the bill's amounts with their labels. The amounts add up to the order's total.

    If a bank returned an amount to a mate, it no longer counts as paid by a mate. If mates have paid no other
    amount, the sum of their payments is left out.
    """
    returned = events.back.from_mates if events.back else 0
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
