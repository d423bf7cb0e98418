"""Writes the rows of a split: creates new shares, and ends or keeps the shares of an earlier split.

Every function must be called with the checkout locked. Rules split.shares, pledge.split_changes.
"""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import Exists, OuterRef

from checkout import pledges
from checkout.models import Checkout, GroupLink, PaymentRequest, ReplacedLink
from checkout.split import split_amounts
from checkout.states import ShareStatus
from config.lib import crypto
from payments.models import Payment

TOKEN_BYTES = 16
# How many replaced shares of an order are kept, in addition to those with a payment. Without a limit, a lead could add
# rows without end by splitting an unpaid order again and again.
MAX_REPLACED = 100


class Share(NamedTuple):
    """The planned share of a mate: the amount in minor units, and the name and number that the lead entered.

    If the cost is split by item, `units` contains the number of units of each order line.
    """

    amount: int
    name: str = ""
    phone: str = ""
    units: tuple[int, ...] = ()

    @property
    def has_mate(self) -> bool:
        """Whether the lead entered a name or a number. Otherwise, the units of the share are free."""
        return bool(self.name or self.phone)


def replace_shares(checkout: Checkout, shares: Mapping[int, Share]) -> dict[int, Share]:
    """Replace a checkout's shares by `shares`, a map by position. Return the shares that must still be created.

    If an earlier share has an open link and is for the same mate, it is kept. If its amount or units change, its
    pledge ends, and the link shows the new amount (rule pledge.split_changes). If it was declined or cancelled, it
    opens again. All other earlier shares end.
    """
    rows = list(checkout.payment_requests.order_by("position"))
    matches = _match_shares(
        [row for row in rows if row.status != ShareStatus.DRAFT], shares, checkout.locked_at
    )
    replaced = [row for row in rows if row not in matches.values()]
    for row in replaced:
        pledges.replace_share(row, checkout.locked_at)
    if replaced:
        _delete_oldest_replaced(checkout)
    _move_to_positions({position: row for position, row in matches.items() if row.position != position})
    for position, row in matches.items():
        share = shares[position]
        if share.name != row.name:
            row.name = share.name
            row.save(update_fields=["name"])
        if (share.amount, list(share.units)) != (row.amount, row.units):
            pledges.change_share(row, share.amount, share.units, checkout.locked_at)
        if row.status in (ShareStatus.DECLINED, ShareStatus.CANCELLED):
            row.move(ShareStatus.OPEN, ended_at=None, expires_at=checkout.payable_until)
    return {position: share for position, share in shares.items() if position not in matches}


def _delete_oldest_replaced(checkout: Checkout) -> None:
    """Delete the oldest replaced shares beyond MAX_REPLACED, and their earlier links. Keep shares with a payment."""
    payments = Payment.objects.filter(subject=OuterRef("pk"))
    rows = PaymentRequest.every.filter(~Exists(payments), checkout=checkout, replaced_at__isnull=False)
    surplus = list(rows.order_by("-replaced_at", "-pk").values_list("pk", flat=True)[MAX_REPLACED:])
    if surplus:
        ReplacedLink.objects.filter(share__in=surplus).delete()
        PaymentRequest.every.filter(pk__in=surplus).delete()


def _match_shares(
    rows: Sequence[PaymentRequest], shares: Mapping[int, Share], now: datetime
) -> dict[int, PaymentRequest]:
    """Map each position to the earlier share that is kept there. Other positions are not in the map.

    A share with a name or number follows its mate to another position. A share without either keeps its position. If
    the lead corrects the name of a mate whose card is held, the share is kept too.
    """
    unmatched, matches = list(rows), dict[int, PaymentRequest]()
    for position, share in sorted(shares.items(), key=lambda item: not item[1].has_mate):
        same = [row for row in unmatched if _is_for_same_mate(row, share, now)]
        unchanged = [row for row in same if (row.amount, row.units) == (share.amount, list(share.units))]
        at_position = [row for row in same if row.position == position]
        candidates = (
            [row for row in unchanged if row in at_position]
            or (unchanged if share.has_mate else [])
            or at_position
        )
        candidates = candidates or (same if share.has_mate else [])
        if candidates:
            matches[position] = candidates[0]
            unmatched.remove(candidates[0])
    renamed = {row.position: row for row in unmatched if _is_renamed(row, shares.get(row.position))}
    return renamed | matches


def _is_renamed(row: PaymentRequest, share: Share | None) -> bool:
    """Return whether the lead changed only the name of a mate whose card is held or being authorized for this share."""
    if share is None or not share.name or row.status not in (ShareStatus.PLEDGED, ShareStatus.PAYING):
        return False
    return (row.amount, row.units, row.phone) == (share.amount, list(share.units), share.phone)


def _is_for_same_mate(row: PaymentRequest, share: Share, now: datetime) -> bool:
    """Return whether a row and a share are for the same mate, according to the number and the name."""
    if row.phone != share.phone:
        return False
    is_taken = row.status in (ShareStatus.PLEDGED, ShareStatus.PAYING) or row.is_kept(now)
    if share.units and not share.has_mate:
        return not row.name and not is_taken
    return share.name == row.name or (is_taken and share.name == row.shown_name)


def _move_to_positions(rows: Mapping[int, PaymentRequest]) -> None:
    """Move shares to other positions. They first move to unused positions, because a position must be unique."""
    for offset in (split_amounts.MAX_PEOPLE, 0):
        for position, row in rows.items():
            row.position = position + offset
            row.save(update_fields=["position"])


def create_shares(checkout: Checkout, shares: Mapping[int, Share]) -> None:
    """Create the shares at their positions, and the order's group link."""
    for_all = secrets.token_urlsafe(TOKEN_BYTES)
    group_link = GroupLink(checkout=checkout, token=for_all, token_digest=crypto.digest(for_all))
    # If an earlier split has already created a group link, that link is kept.
    GroupLink.objects.bulk_create([group_link], ignore_conflicts=True)
    tokens = [secrets.token_urlsafe(TOKEN_BYTES) for _ in shares]
    PaymentRequest.objects.bulk_create(
        PaymentRequest(
            checkout=checkout,
            position=position,
            token=token,
            token_digest=crypto.digest(token),
            amount=share.amount,
            units=list(share.units),
            name=share.name,
            phone=share.phone,
        )
        for (position, share), token in zip(shares.items(), tokens, strict=True)
    )
