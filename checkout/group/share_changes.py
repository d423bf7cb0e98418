"""Changes a share after the split: the lead renames it or asks the mate again, or the mate reconsiders.

Each change locks the checkout. A share cannot be changed while a card is paying it. Rule share.bends.
"""

import secrets
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import pledges, settling
from checkout.group import share_claims
from checkout.mate_shares import RESERVED, ShareNotOpen, expire_if_late, lock_share
from checkout.models import Checkout, PaymentRequest, ReplacedLink
from checkout.split.share_rows import TOKEN_BYTES
from checkout.states import ShareStatus, Status
from config.lib import clock, crypto
from payments import disputes, operator_stops

MAX_NAME = 30
RENAMABLE_STATUSES = (ShareStatus.OPEN, ShareStatus.DECLINED, ShareStatus.CANCELLED, ShareStatus.EXPIRED)
REOPENABLE_STATUSES = (ShareStatus.DECLINED, ShareStatus.CANCELLED)
# Minimum lifetime of the new link after the lead has asked a mate again.
MIN_LINK_LIFETIME = timedelta(hours=24)
# Replaced links that are kept for each share. Without a limit, a lead could add rows without end by asking again.
MAX_REPLACED_LINKS = 20


def rename(share_uuid: UUID, name: str) -> PaymentRequest:
    """Change the name of a share that no one is paying, and end any claim on it.

    If `name` is "", the name of the share is removed. Raises ShareNotOpen.
    """
    with transaction.atomic(durable=True):
        share, _ = lock_share(share_uuid)
        expire_if_late(share, clock.now())
        if share.status in RENAMABLE_STATUSES:
            share.name = name[:MAX_NAME]
            share.save(update_fields=["name"])
            share.end_claim()
    if share.status not in RENAMABLE_STATUSES:
        raise ShareNotOpen(share.status)
    return share


def ask_again(share_uuid: UUID) -> PaymentRequest:
    """Reopen a declined or cancelled share with a new link.

    The old link then shows only that it was replaced. The new link ends when the old link would have ended, but works
    for at least a day. The lead can text the new link at once, because the last reminder no longer counts. A share
    that is already open is returned unchanged. Raises ShareNotOpen, operator_stops.MerchantSuspended,
    operator_stops.AllStopped.
    """
    with transaction.atomic(durable=True):
        share, checkout = lock_share(share_uuid)
        now = clock.now()
        expire_if_late(share, now)
        if share.status in REOPENABLE_STATUSES and can_mates_pay(checkout) and share.replaced_at is None:
            operator_stops.check(checkout.merchant)
            token = secrets.token_urlsafe(TOKEN_BYTES)
            _replace_link(share, now)
            ends_at = max(share.expires_at or now, now + MIN_LINK_LIFETIME)
            if checkout.status == Status.CREATED:
                ends_at = checkout.payable_until
            link = {"token": token, "token_digest": crypto.digest(token), "expires_at": ends_at}
            share.move(ShareStatus.OPEN, ended_at=None, next_reminder_at=None, **link)
    return _require_open(share)


def _replace_link(share: PaymentRequest, now: datetime) -> None:
    """Record that the share's link is replaced. Keep only the newest MAX_REPLACED_LINKS replaced links."""
    ReplacedLink.objects.create(share=share, token_digest=share.token_digest, replaced_at=now)
    rows = ReplacedLink.objects.filter(share=share).order_by("-replaced_at", "-pk")
    surplus = list(rows.values_list("pk", flat=True)[MAX_REPLACED_LINKS:])
    if surplus:
        ReplacedLink.objects.filter(pk__in=surplus).delete()


def reconsider(share_uuid: UUID, *, claim: str = "", is_signed_in: bool = False) -> PaymentRequest:
    """Reopen a share for a mate who declined it and has changed their mind.

    The share keeps its link, and the link still ends at the same time. A share that is already open is not opened
    again. If the browser came through the group link, `claim` is its digest. The open share is then reserved for this
    browser as in `share_claims.claim_share`. Raises ShareNotOpen, OperationInProgress.
    """
    with transaction.atomic(durable=True):
        share, checkout = lock_share(share_uuid)
        now = clock.now()
        expire_if_late(share, now)
        if may_reconsider(share, now) and can_mates_pay(checkout):
            share.move(ShareStatus.OPEN, ended_at=None)
        if claim and share.is_reserved_for_another(claim, now):
            raise ShareNotOpen(RESERVED)
        if claim and share.status == ShareStatus.OPEN:
            share_claims.end_claims(checkout, claim)
            share.claim(claim, now, share_claims.first_end(now, is_signed_in=is_signed_in))
    return _require_open(share)


def may_reconsider(share: PaymentRequest, now: datetime) -> bool:
    """Return whether the mate has declined the share and its link still works."""
    return share.status == ShareStatus.DECLINED and share.expires_at is not None and now < share.expires_at


def can_mates_pay(checkout: Checkout) -> bool:
    """Return whether mates may pay or pledge for this order now.

    They may not pay for a captured order that has an open or lost dispute, or of which others refunded any part at the
    provider. In an unpaid order, they can pledge only for shares with open links.
    """
    if checkout.status == Status.CREATED:
        return pledges.is_waiting(checkout)
    if checkout.status != Status.CAPTURED or disputes.blocking_dispute_of_row(checkout) is not None:
        return False
    return not settling.is_refunded_by_others(checkout)


def _require_open(share: PaymentRequest) -> PaymentRequest:
    if share.status != ShareStatus.OPEN:
        raise ShareNotOpen(share.status)
    return share
