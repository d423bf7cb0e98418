"""Collapses similar lines of a bill for many people into one line, which expands when tapped.

The code calls the collapsed line a fold. When a fold expands, the hidden lines appear in their places on the
bill.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import ngettext

from checkout.models import Checkout, PaymentRequest
from checkout.states import ShareStatus
from hosted_page.group.bill_lines import Line
from hosted_page.group.line_looks import LOOK_BY_STATUS
from payments import money

# For each look of a line, the smallest number of shares that are collapsed into one line.
MINIMUM = {"out": 7, "paid": 3}


@dataclass(frozen=True)
class CollapsedLine:
    """Shares that look alike, collapsed into one line.

    `is_open` says that the fold is expanded from the start, because a text message for one of its shares was
    refused.
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


def collapse(
    checkout: Checkout, shares: Sequence[PaymentRequest], lines: Sequence[Line]
) -> list[CollapsedLine]:
    """Return one fold for each look in MINIMUM.

    If too few shares have a look, its fold is returned with `is_used` false, because an open page might still
    show it.
    """
    return [_fold_lines(checkout, shares, lines, look) for look in MINIMUM]


def _fold_lines(
    checkout: Checkout, shares: Sequence[PaymentRequest], lines: Sequence[Line], look: str
) -> CollapsedLine:
    shares_by_id = {str(share.pk): share for share in shares}
    similar = [line for line in lines if line.look == look and not line.is_lead]
    amount, count = sum(shares_by_id[line.id].amount for line in similar), len(similar)
    _look, tone, icon, words = LOOK_BY_STATUS[ShareStatus.PAID if look == "paid" else ShareStatus.OPEN]
    return CollapsedLine(
        look=look,
        tone=tone,
        icon=icon,
        words=similar[0].words if similar and look == "out" else words,
        mates=ngettext("{count} mate", "{count} mates", count).format(count=count),
        count=count,
        amount=money.display_for_payer(amount, checkout.currency),
        is_used=count >= MINIMUM[look],
        is_open=any(line.wrong for line in similar),
    )
