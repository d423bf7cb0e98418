"""Adds a mate to an order that is already paid. Rule share.late_mate."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from checkout import mate_shares
from checkout.group.share_changes import MAX_NAME, can_mates_pay
from checkout.mate_shares import ShareNotOpen
from checkout.models import Checkout, PaymentRequest
from checkout.split import split_amounts
from checkout.split.share_rows import TOKEN_BYTES
from checkout.states import ShareStatus, Status
from config.lib import crypto
from payments import operator_stops


class AmountNotAllowed(ValueError):
    """The amount cannot be charged to a card, or it is larger than the lead's own part."""


def own_part(checkout: Checkout, shares: Sequence[PaymentRequest]) -> int:
    """Return the lead's own part of the order, in minor units: the order's amount minus all shares."""
    return checkout.amount - sum(share.amount for share in shares)


def ends_at(shares: Sequence[PaymentRequest]) -> datetime | None:
    """Return the time at which the last pay link ends, or None if no link has been opened."""
    return max((share.expires_at for share in shares if share.expires_at is not None), default=None)


def can_add(checkout: Checkout, shares: Sequence[PaymentRequest], now: datetime) -> bool:
    """Return whether the lead can add a mate now: the pay links still work, and the lead's own part is large enough."""
    end = ends_at(shares)
    if not 0 < len(shares) < split_amounts.MAX_PEOPLE - 1 or end is None or end <= now:
        return False
    smallest = mate_shares.amount_rule(checkout).minimum
    is_captured = checkout.status == Status.CAPTURED
    return is_captured and own_part(checkout, shares) >= smallest and can_mates_pay(checkout)


def add_mate(checkout_uuid: UUID, *, name: str, amount: int) -> PaymentRequest:
    """Ask one more mate to pay `amount` minor units, so that the lead's own part becomes smaller by this amount.

    The pay link of the new share ends when the last of the other pay links ends. Raises AmountNotAllowed,
    operator_stops.MerchantSuspended, operator_stops.AllStopped. Raises ShareNotOpen if `can_add` is false.
    """
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        shares = list(checkout.payment_requests.order_by("position"))
        if not can_add(checkout, shares, checkout.locked_at):
            raise ShareNotOpen(checkout.status)
        operator_stops.check(checkout.merchant)
        if not mate_shares.amount_rule(checkout).allows(amount) or amount > own_part(checkout, shares):
            raise AmountNotAllowed
        checkout.touch(people=len(shares) + 2)
        token = secrets.token_urlsafe(TOKEN_BYTES)
        used = {share.position for share in shares}
        share = PaymentRequest.objects.create(
            checkout=checkout,
            position=min(set(range(2, split_amounts.MAX_PEOPLE + 1)) - used),
            amount=amount,
            name=name[:MAX_NAME],
            token=token,
            token_digest=crypto.digest(token),
        )
        share.move(ShareStatus.OPEN, expires_at=ends_at(shares))
    return share
