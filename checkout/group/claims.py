"""Claims: a share that somebody has taken by the group's link is kept for them until they pay, or their time is over.

A claim belongs to a browser, known by a digest. Every change is made under the checkout's lock. Rules group.*.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import sharing
from checkout.models import Checkout, PaymentRequest
from checkout.sharing import ShareNotOpen
from checkout.states import OperationInProgress, ShareStatus, Status
from config.lib import clock
from payments import disputes

AT_FIRST = timedelta(minutes=3)  # until whoever took it has signed in
SIGNED_IN = timedelta(minutes=15)


class NameMissing(ValueError):
    """The share has no name, so whoever takes it must give theirs."""


def is_free(share: PaymentRequest, now: datetime) -> bool:
    """Whether anybody with the group's link may take this open order's share now. Rules group.taken, group.own_link."""
    return share.status == ShareStatus.OPEN and not share.phone and not share.is_kept(now)


def take(
    share_uuid: UUID,
    *,
    claim: str,
    name: str = "",
    is_signed_in: bool = False,
    admit: Callable[[], None] = lambda: None,
) -> PaymentRequest:
    """Keep a free share for whoever has this claim, and let go of another one of this order.

    It is kept for three minutes, or fifteen for somebody who is signed in to it from an earlier take: nothing leads
    them to the sign-in. `name` is theirs, for a share without one. What they have is theirs already: its time stays.
    `admit` is called in the transaction, before anything is written. Raises ShareNotOpen, NameMissing,
    OperationInProgress, PaymentRequest.DoesNotExist. Rules group.taken, group.kept, group.one_share, group.name.
    """
    with transaction.atomic(durable=True):
        share, checkout = sharing.locked(share_uuid)
        now = clock.now()
        sharing.end_late(share, now)
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
    """Keep a share for fifteen minutes from now: whoever took it has signed in.

    It may be free again by now; if somebody else has taken it, ShareNotOpen is raised. Rule group.kept.
    """
    with transaction.atomic(durable=True):
        share, checkout = sharing.locked(share_uuid)
        if share.status == ShareStatus.PAYING and share.claim_digest == claim:
            return
        if share.status != ShareStatus.OPEN or share.claim_digest != claim or not _is_open(checkout):
            raise _not_free(share)
        share.claim(claim, name=share.claim_name, until=clock.now() + SIGNED_IN)


def release(share_uuid: UUID, *, claim: str) -> None:
    """Let anybody have the share again that this claim keeps, unless its card is being asked. Rule group.kept."""
    with transaction.atomic(durable=True):
        share, _ = sharing.locked(share_uuid)
        if share.status == ShareStatus.OPEN and share.claim_digest == claim:
            share.claim("")


def _not_free(share: PaymentRequest) -> ShareNotOpen:
    return ShareNotOpen(sharing.KEPT if share.status == ShareStatus.OPEN else share.status)


def _is_open(checkout: Checkout) -> bool:
    """Whether the order's links take money now."""
    return checkout.status == Status.CAPTURED and disputes.standing(checkout.pk) is None


def _let_go_of_others(checkout: Checkout, claim: str) -> None:
    """End this claim on the order's other shares. Raises OperationInProgress if a card pays one of them."""
    for other in checkout.payment_requests.filter(claim_digest=claim):
        if other.status == ShareStatus.PAYING:
            raise OperationInProgress
        other.claim("")
