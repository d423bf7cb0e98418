"""Writes the rows of a split: creates shares, and ends or keeps the shares of an earlier split.

Every function must be called with the checkout locked. Rules split.shares, pledge.split_changes.
"""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from checkout import pledges
from checkout.models import Checkout, GroupLink, PaymentRequest
from checkout.split import split_amounts
from checkout.states import ShareStatus
from config.lib import crypto

TOKEN_BYTES = 16


class Share(NamedTuple):
    """What a mate is asked for: the amount in minor units, and the name and number that the lead entered.

    `units` are the units of each line of the order, if the cost is split by item.
    """

    amount: int
    name: str = ""
    phone: str = ""
    units: tuple[int, ...] = ()

    @property
    def has_mate(self) -> bool:
        """Whether the lead entered a name or number. Units of a share without them are free."""
        return bool(self.name or self.phone)


def replace_shares(checkout: Checkout, wanted: Mapping[int, Share]) -> dict[int, Share]:
    """End the shares that are not wanted, by position. Return the wanted shares that are missing then.

    A share whose link is open stays if the same mate is asked. If only the amount or the units change, its
    pledge ends, and its link asks for the new ones (rule pledge.split_changes). A mate who refused is asked
    again.
    """
    rows = list(checkout.payment_requests.order_by("position"))
    kept = _match_shares([row for row in rows if row.status != ShareStatus.DRAFT], wanted, checkout.locked_at)
    for row in rows:
        if row not in kept.values():
            pledges.replace_share(row, checkout.locked_at)
    _move_to_positions({position: row for position, row in kept.items() if row.position != position})
    for position, row in kept.items():
        share = wanted[position]
        if share.name != row.name:
            row.name = share.name
            row.save(update_fields=["name"])
        if (share.amount, list(share.units)) != (row.amount, row.units):
            pledges.change_share(row, share.amount, share.units, checkout.locked_at)
        if row.status in (ShareStatus.DECLINED, ShareStatus.CANCELLED):
            row.move(ShareStatus.OPEN, ended_at=None, expires_at=checkout.payable_until)
    return {position: share for position, share in wanted.items() if position not in kept}


def _match_shares(
    rows: Sequence[PaymentRequest], wanted: Mapping[int, Share], now: datetime
) -> dict[int, PaymentRequest]:
    """Return the share that stays for each wanted position.

    A share with a name or number stays with its mate. A share without them stays at its position.
    """
    left, kept = list(rows), dict[int, PaymentRequest]()
    for position, share in sorted(wanted.items(), key=lambda item: not item[1].has_mate):
        same = [row for row in left if _asks(row, share, now)]
        alike = [row for row in same if (row.amount, row.units) == (share.amount, list(share.units))]
        here = [row for row in same if row.position == position]
        found = [row for row in alike if row in here] or (alike if share.has_mate else []) or here
        found = found or (same if share.has_mate else [])
        if found:
            kept[position] = found[0]
            left.remove(found[0])
    return kept


def _asks(row: PaymentRequest, share: Share, now: datetime) -> bool:
    """Return whether a row asks the mate of a wanted share, by the lead's name for the mate or the mate's own."""
    if row.phone != share.phone:
        return False
    is_taken = row.status in (ShareStatus.PLEDGED, ShareStatus.PAYING) or row.is_kept(now)
    if share.units and not share.has_mate:
        return not row.name and not is_taken
    return share.name == row.name or (is_taken and share.name == row.shown_name)


def _move_to_positions(rows: Mapping[int, PaymentRequest]) -> None:
    """Move shares to other positions. Positions are unique, so all of them first move out of the way."""
    for offset in (split_amounts.MAX_PEOPLE, 0):
        for position, row in rows.items():
            row.position = position + offset
            row.save(update_fields=["position"])


def create_shares(checkout: Checkout, shares: Mapping[int, Share]) -> None:
    """Create shares by their positions, and the order's group link."""
    for_all = secrets.token_urlsafe(TOKEN_BYTES)
    group_link = GroupLink(checkout=checkout, token=for_all, token_digest=crypto.digest(for_all))
    # If an earlier split has created a group link, that link is kept.
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
