"""Collapsed lines of a bill of many people: similar shares are one line, which a tap expands.

The lines of the shares keep their places. An opened fold shows them there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import ngettext

from checkout.models import Checkout, PaymentRequest
from checkout.states import ShareStatus
from hosted_page.group.bill_lines import TOLD, Line
from payments import money

# The number of similar shares from which on they are folded: open shares later than paid ones.
MINIMUM = {"out": 7, "paid": 3}


@dataclass(frozen=True)
class Fold:
    """Shares that look alike, as one line.

    `is_open` says that the fold starts open, because it contains a share whose text was refused.
    """

    look: str
    tone: str
    icon: str
    words: str | Promise
    mates: str
    count: int
    amount: str
    is_used: bool
    is_open: bool


def collapse(checkout: Checkout, shares: Sequence[PaymentRequest], lines: Sequence[Line]) -> list[Fold]:
    """Return one fold for each look.

    A fold that is not used now is returned too, because a page that was opened earlier might show it.
    """
    return [_fold_lines(checkout, shares, lines, look) for look in MINIMUM]


def _fold_lines(
    checkout: Checkout, shares: Sequence[PaymentRequest], lines: Sequence[Line], look: str
) -> Fold:
    known = {str(share.pk): share for share in shares}
    alike = [line for line in lines if line.look == look and not line.is_lead]
    amount, count = sum(known[line.id].amount for line in alike), len(alike)
    _look, tone, icon, words = TOLD[ShareStatus.PAID if look == "paid" else ShareStatus.OPEN]
    return Fold(
        look=look,
        tone=tone,
        icon=icon,
        words=alike[0].words if alike and look == "out" else words,
        mates=ngettext("{count} mate", "{count} mates", count).format(count=count),
        count=count,
        amount=money.for_payer(amount, checkout.currency),
        is_used=count >= MINIMUM[look],
        is_open=any(line.wrong for line in alike),
    )
