"""Writes the rows of a split: creates shares, and ends or keeps the shares of an earlier split.

Every function must be called with the checkout locked. Rules split.shares, pledge.split_changes.
"""

import secrets
from collections.abc import Mapping, Sequence

from checkout import pledges, split_amounts
from checkout.models import Checkout, GroupLink, PaymentRequest
from checkout.states import ShareStatus
from config.lib import crypto

TOKEN_BYTES = 16
Wanted = tuple[int, str, str]  # the amount in minor units, and the name and number that the lead entered


def replace_shares(checkout: Checkout, wanted: Mapping[int, Wanted]) -> dict[int, Wanted]:
    """End the shares that are not wanted, by position. Return the wanted shares that are missing then.

    A share whose link is open stays if the same mate is asked. If only the amount changes, its pledge ends, and
    its link asks for the new amount (rule pledge.split_changes). A mate who refused is asked again.
    """
    rows = list(checkout.payment_requests.order_by("position"))
    kept = _match_shares([row for row in rows if row.status != ShareStatus.DRAFT], wanted)
    for row in rows:
        if row not in kept.values():
            pledges.replace_share(row, checkout.locked_at)
    _move_to_positions({position: row for position, row in kept.items() if row.position != position})
    for position, row in kept.items():
        if wanted[position][0] != row.amount:
            pledges.change_amount(row, wanted[position][0], checkout.locked_at)
        if row.status in (ShareStatus.DECLINED, ShareStatus.CANCELLED):
            row.move(ShareStatus.OPEN, ended_at=None, expires_at=checkout.payable_until)
    return {position: share for position, share in wanted.items() if position not in kept}


def _match_shares(rows: Sequence[PaymentRequest], wanted: Mapping[int, Wanted]) -> dict[int, PaymentRequest]:
    """Return the share that stays for each wanted position.

    A share with a name or number stays with its mate. A share without them stays at its position.
    """
    left, kept = list(rows), dict[int, PaymentRequest]()
    for position, share in sorted(wanted.items(), key=lambda item: not any(item[1][1:])):
        same = [row for row in left if (row.name, row.phone) == share[1:]]
        here = [row for row in same if row.position == position]
        found = here or (same if any(share[1:]) else [])
        if found:
            kept[position] = found[0]
            left.remove(found[0])
    return kept


def _move_to_positions(rows: Mapping[int, PaymentRequest]) -> None:
    """Move shares to other positions. Positions are unique, so all of them first move out of the way."""
    for offset in (split_amounts.MAX_PEOPLE, 0):
        for position, row in rows.items():
            row.position = position + offset
            row.save(update_fields=["position"])


def create_shares(checkout: Checkout, shares: Mapping[int, Wanted]) -> None:
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
            amount=amount,
            name=name,
            phone=phone,
        )
        for (position, (amount, name, phone)), token in zip(shares.items(), tokens, strict=True)
    )
