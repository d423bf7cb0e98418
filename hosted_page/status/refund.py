"""What a refund gives back to one card, line by line, until nothing is left on it. Rule page.refund."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from checkout import reading
from checkout.models import Checkout, PaymentRequest
from checkout.states import ShareStatus, Status
from hosted_page import summary
from payments import money
from payments.models import Operation, Payment, Posting

BORNE = (ShareStatus.PAID, ShareStatus.REIMBURSED, ShareStatus.REFUNDED)
Purpose, State = Operation.Purpose, Operation.State


class Move(NamedTuple):
    """What was taken from a card or, negative, given back to it, in minor units."""

    label: str
    amount: int
    at: datetime | None


@dataclass(frozen=True)
class Row:
    """A line of what a card has borne, as shown."""

    label: str
    amount: str
    at: SafeString


@dataclass(frozen=True)
class Bill:
    """What a card has borne and gets back: the rows come to what is left on it."""

    card: str
    goes_back: str
    rows: list[Row]
    left: str
    is_settled: bool
    when: str  # settled, with the zone's words; "" while it is under way
    others: str = ""


def of_lead(checkout: Checkout) -> Bill | None:
    """Return what the lead's card gets back, None while that is open: a mate is paying, or a share is on its way."""
    is_settled = checkout.status == Status.REFUNDED
    taken = Move(_("Taken"), checkout.amount, checkout.captured_at)
    if not checkout.has_mates:
        back = Move(_back(is_settled), -checkout.amount, checkout.last_refund_at)
        return _bill(checkout, checkout.payment, [taken, back], is_settled=is_settled)
    refunds, shares = _refunds(checkout.payment_id), reading.shares(checkout)
    part = -sum(one.amount for one in refunds if one.purpose == Purpose.REFUND_PART)
    if not part and not is_settled:
        return None
    moves = [taken, *_earlier(refunds, shares)]
    outside = sum(move.amount for move in moves) + part
    if is_settled and outside > 0:
        moves.append(Move(_("Given back before"), -outside, None))
    if part:
        moves.append(Move(_back(is_settled), part, checkout.last_refund_at))
    others = _others(checkout, shares)
    return _bill(checkout, checkout.payment, moves, is_settled=is_settled, others=others)


def of_mate(checkout: Checkout, share: PaymentRequest) -> Bill:
    """Return what a mate's card gets back: the share that it has paid."""
    is_settled = share.status == ShareStatus.REFUNDED
    ends = [one.ended_at for one in _refunds(share.payment_id) if one.ended_at] if is_settled else []
    back = Move(_back(is_settled), -share.amount, ends[-1] if ends else None)
    moves = [Move(_("Taken"), share.amount, share.paid_at), back]
    return _bill(checkout, share.payment, moves, is_settled=is_settled)


def _refunds(payment_uuid: UUID | None) -> list[Operation]:
    """Return what was or is being given back to a card; what came back of it is sent again, and no second refund."""
    rows = Operation.objects.filter(payment=payment_uuid, kind=Operation.Kind.REFUND)
    rows = rows.exclude(state__in=[State.FAILED, State.DECLINED]).exclude(account=Posting.Account.RETURNED)
    return list(rows.order_by("created_at", "pk"))


def _earlier(refunds: Sequence[Operation], shares: Sequence[PaymentRequest]) -> list[Move]:
    """Return what the lead's card got back when mates had paid."""
    names = {share.pk: share.name for share in shares}
    found = []
    for one in refunds:
        if one.purpose == Purpose.REIMBURSEMENT and one.state == State.SUCCEEDED:
            name = names.get(one.reimbursed_share, "")
            label = _("Back when {name} paid").format(name=name) if name else _("Back when a mate paid")
            found.append(Move(label, -one.amount, one.ended_at))
    return found


def _back(is_settled: bool) -> str:
    return _("Given back") if is_settled else _("On its way back")


def _bill(
    checkout: Checkout, payment: Payment | None, moves: Sequence[Move], *, is_settled: bool, others: str = ""
) -> Bill:
    zone, currency = summary.zone_of(checkout), checkout.currency
    rows = [
        Row(label, money.for_payer(amount, currency), summary.full_time(at, zone) if at else SafeString())
        for label, amount, at in moves
    ]
    label, part, at = moves[-1]
    goes_back = money.for_payer(-part, currency) if label == _back(is_settled) else ""
    when = summary.dated_in_place(at, zone) if at and is_settled else ""
    left = money.for_payer(sum(amount for _label, amount, _at in moves), currency)
    card = _("Your {card}").format(card=summary.card_name(payment))
    return Bill(card, goes_back, rows, left, is_settled, when, others)


def _others(checkout: Checkout, shares: Sequence[PaymentRequest]) -> str:
    """Return in a sentence what mates' cards get back."""
    paid = [share for share in shares if share.status in BORNE]
    amount = money.for_payer(sum(share.amount for share in paid), checkout.currency)
    ended = _("Your mates’ links have ended.") if checkout.status == Status.REFUNDED else ""
    if not paid:
        return ended
    if len(paid) == 1 and paid[0].name:
        words = _("{name}’s card gets its {amount} back, too.").format(name=paid[0].name, amount=amount)
    else:
        words = ngettext(
            "{count} mate’s card gets its {amount} back, too.",
            "{count} mates’ cards get their {amount} back, too.",
            len(paid),
        ).format(count=len(paid), amount=amount)
    return f"{words} {ended}".strip()
