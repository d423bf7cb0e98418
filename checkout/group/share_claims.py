"""Claims: a share that a person takes through the group link is kept for them (rules group.*).

It is kept until they pay or the claim's time is over. A claim belongs to a browser, which a digest
identifies. Every change is made under the checkout's lock.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import mate_shares
from checkout.mate_shares import ShareNotOpen
from checkout.models import Checkout, PaymentRequest
from checkout.states import OperationInProgress, ShareStatus, Status
from config.lib import clock
from payments import disputes

AT_FIRST = timedelta(minutes=3)  # until the person who took the share has signed in
SIGNED_IN = timedelta(minutes=15)


class NameMissing(ValueError):
    """The share has no name, so the person who takes it must give theirs."""


def is_free(share: PaymentRequest, now: datetime) -> bool:
    """Return whether anyone with the group link may take this share of an open order now.

    Rules group.taken, group.own_link.
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
    """Keep a free share for this claim, and release any other share of the order that the claim keeps.

    The share is kept for three minutes. If the person is signed in to the share from an earlier take, it is
    kept for fifteen, because no page leads them to the sign-in. `name` is the person's own name, for a share
    without one. If this claim already keeps the share, its time stays the same. `admit` is called in the
    transaction, before anything is written. Raises ShareNotOpen, NameMissing, OperationInProgress,
    PaymentRequest.DoesNotExist. Rules group.taken, group.kept, group.one_share, group.name.
    """
    with transaction.atomic(durable=True):
        share, checkout = mate_shares.locked(share_uuid)
        now = clock.now()
        mate_shares.end_late(share, now)
        if share.is_kept(now) and share.claim_digest == claim:
            return share
        if not _is_open(checkout) or not is_free(share, now):
            raise _not_free(share)
        if not (share.name or name):
            raise NameMissing
        admit()
        _let_go_of_others(checkout, claim)
        until = now + (SIGNED_IN if is_signed_in else AT_FIRST)
        share.claim(claim, name="" if share.name else name, until=until)
        return share


def hold_longer(share_uuid: UUID, *, claim: str) -> None:
    """Keep a share for fifteen minutes from now, because the person who took it has signed in.

    A claim whose time is over is renewed, unless another person has taken the share. In that case
    ShareNotOpen is raised. Rule group.kept.
    """
    with transaction.atomic(durable=True):
        share, checkout = mate_shares.locked(share_uuid)
        if share.status == ShareStatus.PAYING and share.claim_digest == claim:
            return
        if share.status != ShareStatus.OPEN or share.claim_digest != claim or not _is_open(checkout):
            raise _not_free(share)
        share.claim(claim, name=share.claim_name, until=clock.now() + SIGNED_IN)


def release(share_uuid: UUID, *, claim: str) -> None:
    """Free the share that this claim keeps, unless its card is being asked. Rule group.kept."""
    with transaction.atomic(durable=True):
        share, _ = mate_shares.locked(share_uuid)
        if share.status == ShareStatus.OPEN and share.claim_digest == claim:
            share.claim("")


def _not_free(share: PaymentRequest) -> ShareNotOpen:
    return ShareNotOpen(mate_shares.KEPT if share.status == ShareStatus.OPEN else share.status)


def _is_open(checkout: Checkout) -> bool:
    """Return whether the order's links accept payments now."""
    return checkout.status == Status.CAPTURED and disputes.standing(checkout.pk) is None


def _let_go_of_others(checkout: Checkout, claim: str) -> None:
    """End this claim on the order's other shares. Raises OperationInProgress if a card pays one of them."""
    for other in checkout.payment_requests.filter(claim_digest=claim):
        if other.status == ShareStatus.PAYING:
            raise OperationInProgress
        other.claim("")
