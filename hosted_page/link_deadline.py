"""The time when an order's pay links end, and the length of their last day. On that day, mates can be reminded.

Rule share.last_day.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from checkout.models import PaymentRequest
from checkout.states import ShareStatus

ID = "last-day"  # anchor on the lead's page; a text message links to it
LAST_DAY = timedelta(days=1)


def ends_at(shares: Sequence[PaymentRequest]) -> datetime | None:
    """Return when the last open link ends, or None if no link is open."""
    ends = (share.expires_at for share in shares if share.status == ShareStatus.OPEN)
    return max((end for end in ends if end is not None), default=None)
