"""Lets a mate claim some of the free units of an order that is split by item.

Rules split.free_units, group.*.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from checkout import mate_shares, pledges
from checkout.group import late_mates, share_claims
from checkout.mate_shares import ShareNotOpen
from checkout.models import Checkout, PaymentRequest
from checkout.split import item_amounts, share_rows, split_amounts
from checkout.split.share_rows import Share
from checkout.states import ShareStatus
from payments.models import Payment


class UnitsTaken(Exception):
    """Other people have already taken some of these units."""


class NoPlaceLeft(Exception):
    """The order already has as many people as allowed, so the next person must take all remaining units."""


class TooSmall(ValueError):
    """The amount for these units cannot be charged to a card, because it is `missing` minor units too small."""

    def __init__(self, missing: int) -> None:
        super().__init__(f"{missing} more is needed.")
        self.missing = missing


def free_units(shares: Sequence[PaymentRequest], now: datetime) -> list[int]:
    """Return how many units of each order line are free, or [] if the order is not split by item."""
    free = [share.units for share in shares if share.has_free_units(now)]
    width = max((len(share.units) for share in shares), default=0)
    return item_amounts.add_units([0] * width, *free)


def take_units(
    checkout_uuid: UUID,
    units: Sequence[int],
    *,
    claim: str,
    name: str,
    admit: Callable[[], None] = lambda: None,
) -> PaymentRequest:
    """Create a share with the given units of each order line. Reserve it for a browser for three minutes.

    `claim` is the digest of the browser. If the browser has claimed another share, that share is released first.
    `name` is the person's name. `admit` is called as in `share_claims.claim_share`. Raises ShareNotOpen if no one can
    take a share now, UnitsTaken, NoPlaceLeft, TooSmall, share_claims.NameMissing, OperationInProgress.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        now = checkout.locked_at
        if not share_claims.accepts_payments(checkout):
            raise ShareNotOpen(checkout.status)
        if not name:
            raise share_claims.NameMissing
        share_claims.end_claims(checkout, claim)
        free = _free_shares(checkout, now)
        remaining = _remaining_units(free, units)
        share = _divide(checkout, free, units, remaining)
        admit()
        share.claim(claim, now, now + share_claims.AT_FIRST, name=name)
    return share


def _free_shares(checkout: Checkout, now: datetime) -> list[PaymentRequest]:
    rows = list(checkout.payment_requests.filter(status=ShareStatus.OPEN).order_by("position"))
    for row in rows:
        row.checkout = checkout
        mate_shares.expire_if_late(row, now)
    free = [row for row in rows if row.status == ShareStatus.OPEN and row.has_free_units(now)]
    # The first share in the list stays free. A share that no mate has had is therefore put first.
    return sorted(free, key=lambda row: (row.mate_id is not None, row.claim_name != "", row.position))


def _remaining_units(free: Sequence[PaymentRequest], units: Sequence[int]) -> list[int]:
    """Return how many units of each order line stay free. Raises UnitsTaken."""
    available = item_amounts.add_units(*(share.units for share in free)) if free else []
    if len(units) != len(available) or not any(units):
        raise UnitsTaken
    remaining = [most - count for most, count in zip(available, units, strict=True)]
    if min(remaining) < 0 or min(units) < 0:
        raise UnitsTaken
    return remaining


def _divide(
    checkout: Checkout, free: Sequence[PaymentRequest], units: Sequence[int], remaining: Sequence[int]
) -> PaymentRequest:
    """Divide the free shares into one with `units` and one with the remaining units. Return the one with `units`.

    The first free share keeps its link and gets the remaining units. The lead might have a page about this share
    open, and this page must never show a mate's share. If the amount for the remaining units cannot be charged to a
    card, the lead bears them. Both links end when the last link of the free shares ends.
    """
    rule, now = mate_shares.amount_rule(checkout), checkout.locked_at
    amount = item_amounts.cost_of(checkout.bill, units, step=rule.step).amount
    if not rule.allows(amount):
        raise TooSmall(rule.minimum - amount)
    remaining_amount = item_amounts.cost_of(checkout.bill, remaining, step=rule.step).amount
    for surplus in free[1:]:
        _drop(surplus, now)
    share = free[0]
    share.expires_at = late_mates.ends_at(free)
    if rule.allows(remaining_amount):
        share = _add_share(checkout, free[0], Share(amount, units=tuple(units)))
        _give(free[0], remaining_amount, remaining, now)
    else:
        _give(share, amount, units, now)
    checkout.touch(people=checkout.payment_requests.count() + 1)
    return share


def _give(share: PaymentRequest, amount: int, units: Sequence[int], now: datetime) -> None:
    """Change the amount and the units of a free share. If the share had a mate, remove the mate."""
    pledges.change_share(share, amount, units, now)
    share.mate = None
    share.save(update_fields=["mate", "expires_at"])


def _drop(share: PaymentRequest, now: datetime) -> None:
    """Delete a free share.

    If the share has a payment or an earlier pay link, keep its row as a replaced share without a mate.
    """
    if not Payment.objects.filter(subject=share.pk).exists() and not share.replaced_links.exists():
        share.delete()
        return
    pledges.replace_share(share, now)
    share.mate = None
    share.save(update_fields=["mate"])


def _add_share(checkout: Checkout, free: PaymentRequest, share: Share) -> PaymentRequest:
    """Add a share at the first free position. Its link ends when the link of the share `free` ends."""
    used = set(checkout.payment_requests.values_list("position", flat=True))
    if len(used) >= split_amounts.MAX_PEOPLE - 1:
        raise NoPlaceLeft
    position = min(set(range(2, split_amounts.MAX_PEOPLE + 1)) - used)
    share_rows.create_shares(checkout, {position: share})
    row: PaymentRequest = checkout.payment_requests.get(position=position)
    row.move(ShareStatus.OPEN, expires_at=free.expires_at)
    return row
