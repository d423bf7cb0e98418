"""Shares that bend: renamed or asked for again by the lead, or paid after all by who said no (rule share.bends).

Each happens under the checkout's lock, and none while the share's card is being asked.
"""

import secrets
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import settling
from checkout.models import Checkout, PaymentRequest
from checkout.sharing import TOKEN_BYTES, ShareNotOpen, end_late, locked
from checkout.states import ShareStatus, Status
from config.lib import clock, crypto
from payments import disputes

MAX_NAME = 30
RENAMED = (ShareStatus.OPEN, ShareStatus.DECLINED, ShareStatus.CANCELLED, ShareStatus.EXPIRED)
ASKED_AGAIN = (ShareStatus.DECLINED, ShareStatus.CANCELLED)
AT_LEAST = timedelta(hours=24)  # for which the link of a share that is asked for again works


def rename(share_uuid: UUID, name: str) -> PaymentRequest:
    """Write another name on a share that nobody is paying, "" for none; a claim on it ends. Raises ShareNotOpen."""
    with transaction.atomic(durable=True):
        share, _ = locked(share_uuid)
        end_late(share, clock.now())
        if share.status in RENAMED:
            share.name = name[:MAX_NAME]
            share.save(update_fields=["name"])
            share.claim("")
    if share.status not in RENAMED:
        raise ShareNotOpen(share.status)
    return share


def ask_again(share_uuid: UUID) -> PaymentRequest:
    """Open a share again that was declined or cancelled, with a new link: the old one is not known any more.

    It ends with the order's other links, and works for a day at least. Nobody has it by text, so one may go out at
    once. A share that is open already is returned as it is. Raises ShareNotOpen.
    """
    with transaction.atomic(durable=True):
        share, checkout = locked(share_uuid)
        now = clock.now()
        end_late(share, now)
        if share.status in ASKED_AGAIN and may_be_asked(checkout):
            token = secrets.token_urlsafe(TOKEN_BYTES)
            ends_at = max(share.expires_at or now, now + AT_LEAST)
            link = {"token": token, "token_digest": crypto.digest(token), "expires_at": ends_at}
            share.move(ShareStatus.OPEN, ended_at=None, next_reminder_at=None, **link)
    return _open(share)


def reconsider(share_uuid: UUID) -> PaymentRequest:
    """Open a share again whose mate has said no and changes their mind, by the same link, until its end.

    One that is open already is returned as it is. Raises ShareNotOpen.
    """
    with transaction.atomic(durable=True):
        share, checkout = locked(share_uuid)
        now = clock.now()
        end_late(share, now)
        if may_reconsider(share, now) and may_be_asked(checkout):
            share.move(ShareStatus.OPEN, ended_at=None)
    return _open(share)


def may_reconsider(share: PaymentRequest, now: datetime) -> bool:
    """Whether the mate has said no, and the link has not ended."""
    return share.status == ShareStatus.DECLINED and share.expires_at is not None and now < share.expires_at


def may_be_asked(checkout: Checkout) -> bool:
    """Whether mates pay for this order now: it is captured, not disputed, and nobody has given some of it back."""
    if checkout.status != Status.CAPTURED or disputes.standing(checkout.pk) is not None:
        return False
    return not settling.is_given_back_outside(checkout.pk)


def _open(share: PaymentRequest) -> PaymentRequest:
    if share.status != ShareStatus.OPEN:
        raise ShareNotOpen(share.status)
    return share
