"""Changes to shares after the split: rename a share, ask a mate again, or reconsider a decline.

Each change locks the checkout. A share does not change while a card is paying it. Rule share.bends.
"""

import secrets
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import settling
from checkout.mate_shares import TOKEN_BYTES, ShareNotOpen, end_late, locked
from checkout.models import Checkout, PaymentRequest
from checkout.states import ShareStatus, Status
from config.lib import clock, crypto
from payments import disputes

MAX_NAME = 30
RENAMED = (ShareStatus.OPEN, ShareStatus.DECLINED, ShareStatus.CANCELLED, ShareStatus.EXPIRED)
ASKED_AGAIN = (ShareStatus.DECLINED, ShareStatus.CANCELLED)
AT_LEAST = timedelta(hours=24)  # minimum lifetime of the new link when a mate is asked again


def rename(share_uuid: UUID, name: str) -> PaymentRequest:
    """Change the name of a share that no one is paying, and end any claim on it.

    If `name` is "", the share has no name afterwards. Raises ShareNotOpen.
    """
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
    """Open a declined or cancelled share again, with a new link. The old link no longer works.

    The new link ends when the old one would have ended, but works for at least a day. The pause between two
    reminders is reset, so the new link can be texted at once. A share that is already open is returned
    unchanged. Raises ShareNotOpen.
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
    return _require_open(share)


def reconsider(share_uuid: UUID) -> PaymentRequest:
    """Open a share again for a mate who declined it and has changed their mind.

    The link and the time of its end stay the same. A share that is already open is returned unchanged. Raises
    ShareNotOpen.
    """
    with transaction.atomic(durable=True):
        share, checkout = locked(share_uuid)
        now = clock.now()
        end_late(share, now)
        if may_reconsider(share, now) and may_be_asked(checkout):
            share.move(ShareStatus.OPEN, ended_at=None)
    return _require_open(share)


def may_reconsider(share: PaymentRequest, now: datetime) -> bool:
    """Return whether the mate declined the share and its link has not ended."""
    return share.status == ShareStatus.DECLINED and share.expires_at is not None and now < share.expires_at


def may_be_asked(checkout: Checkout) -> bool:
    """Return whether mates may pay for this order now.

    The order must be captured, must have no open or lost dispute, and must not have been refunded at the
    provider, even in part.
    """
    if checkout.status != Status.CAPTURED or disputes.standing(checkout.pk) is not None:
        return False
    return not settling.is_given_back_outside(checkout.pk)


def _require_open(share: PaymentRequest) -> PaymentRequest:
    if share.status != ShareStatus.OPEN:
        raise ShareNotOpen(share.status)
    return share
