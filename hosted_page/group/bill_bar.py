"""Builds the bar on the lead's bill, with one part per person. The width of a part shows the person's amount."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from checkout.models import Checkout, PaymentRequest
from hosted_page import share_bar
from hosted_page.group import group_members
from hosted_page.group.bill_lines import Line
from hosted_page.group.line_looks import ICON_ON_BAR

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
