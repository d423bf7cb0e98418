"""Reserves a share for the person who takes it through the group link (rules group.*). This is called a claim.

The share is reserved until the person has paid or the claim expires. A claim belongs to one browser. A digest
identifies the browser. Every change locks the checkout.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import mate_shares, pledges
from checkout.mate_shares import ShareNotOpen
from checkout.models import Checkout, PaymentRequest
from checkout.states import OperationInProgress, ShareStatus, Status
from config.lib import clock
from payments import disputes

AT_FIRST = timedelta(minutes=3)  # lifetime of a claim before the person has signed in
SIGNED_IN = timedelta(minutes=15)  # lifetime of a claim after the person has signed in


class NameMissing(ValueError):
    """The share has no name, so the person who takes it must enter their name."""


def is_free(share: PaymentRequest, now: datetime) -> bool:
    """Return whether anyone with the group link may take this share now.

    The caller must check whether the order still accepts payments. Rules group.taken, group.own_link.
    """
    return share.status == ShareStatus.OPEN and not share.phone and not share.is_kept(now)


def claim_share(
    share_uuid: UUID,
    *,
    claim: str,
    name: str = "",
    is_signed_in: bool = False,
    admit: Callable[[], None] = lambda: None,
) -> PaymentRequest:
    """Reserve a free share for a browser, and release any other share of the order that the browser has claimed.

    `claim` is the digest of the browser. The share is reserved for three minutes, or for fifteen minutes if the
    person has already signed in on the share's page. `name` is the person's name, which is needed if the share has no
    name. If the share is already reserved for this browser, it is returned unchanged. `admit` is called in the
    transaction before the first write, and can raise an exception to refuse the claim. Raises ShareNotOpen,
    NameMissing, OperationInProgress, PaymentRequest.DoesNotExist. Rules group.taken, group.kept, group.one_share,
    group.name.
    """
    with transaction.atomic(durable=True):
        share, checkout = mate_shares.lock_share(share_uuid)
        now = clock.now()
        mate_shares.expire_if_late(share, now)
        if share.is_kept(now) and share.claim_digest == claim:
            return share
        # Free units can be claimed only with `unit_claims.take_units`, even if one person takes all of them.
        if not accepts_payments(checkout) or not is_free(share, now) or share.has_free_units(now):
            raise _refusal_of(share)
        if not (share.name or name):
            raise NameMissing
        admit()
        end_claims(checkout, claim)
        ends = first_end(now, is_signed_in=is_signed_in)
        share.claim(claim, now, ends, name="" if share.name else name)
        return share


def first_end(now: datetime, *, is_signed_in: bool) -> datetime:
    """Return the time at which a claim that begins now will expire."""
    return now + (SIGNED_IN if is_signed_in else AT_FIRST)


def extend_claim(share_uuid: UUID, *, claim: str) -> None:
    """Reserve a share for fifteen minutes from now, because the person who claimed it has signed in.

    A claim that has expired is also renewed. Raises ShareNotOpen if another person has claimed the share, or if the
    share is no longer open. Rule group.kept.
    """
    with transaction.atomic(durable=True):
        share, checkout = mate_shares.lock_share(share_uuid)
        if share.status == ShareStatus.PAYING and share.claim_digest == claim:
            return
        if share.status != ShareStatus.OPEN or share.claim_digest != claim or not accepts_payments(checkout):
            raise _refusal_of(share)
        now = clock.now()
        share.claim(claim, now, now + SIGNED_IN, name=share.claim_name)


def release_claim(share_uuid: UUID, *, claim: str) -> None:
    """End this browser's claim on a share, unless a card is paying the share. Rule group.kept."""
    with transaction.atomic(durable=True):
        share, _ = mate_shares.lock_share(share_uuid)
        if share.status == ShareStatus.OPEN and share.claim_digest == claim:
            share.end_claim()


def _refusal_of(share: PaymentRequest) -> ShareNotOpen:
    return ShareNotOpen(mate_shares.RESERVED if share.status == ShareStatus.OPEN else share.status)


def accepts_payments(checkout: Checkout) -> bool:
    """Return whether mates can pay or pledge now through the pay links of the order."""
    if checkout.status == Status.CREATED:
        return pledges.is_waiting(checkout)
    return checkout.status == Status.CAPTURED and disputes.blocking_dispute(checkout.pk) is None


def end_claims(checkout: Checkout, claim: str) -> None:
    """Release all shares of the order that this browser has claimed.

    Raises OperationInProgress if a card is paying one of these shares.
    """
    claimed = checkout.payment_requests.filter(claim_digest=claim)
    for other in claimed.exclude(status=ShareStatus.PLEDGED):
        if other.status == ShareStatus.PAYING:
            raise OperationInProgress
        other.end_claim()
