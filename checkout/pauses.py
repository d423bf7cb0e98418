"""Extends pay links after a pause. Links are paused while the order is being refunded or has an open dispute.

Rule share.pauses.
"""

from collections.abc import Iterator
from datetime import datetime
from operator import itemgetter

from django.db.models import F, Max, OuterRef, Subquery

from checkout.models import Change, Checkout, LeadNotification
from checkout.states import ShareStatus, Status
from payments import disputes
from payments.models import Dispute


def extend_links_after_pause(checkout: Checkout, now: datetime) -> None:
    """Extend the open links of an order by the length of the pause that has just ended.

    If the links are still paused, their end does not change. The lead's message about the end of the links is
    postponed by the same length. Must be called with the checkout locked.
    """
    if checkout.status != Status.CAPTURED or not checkout.has_mates or disputes.has_open_dispute(checkout.pk):
        return
    links = checkout.payment_requests.filter(status=ShareStatus.OPEN)
    links.update(expires_at=F("expires_at") + (now - pause_began_at(checkout, now)))
    ends_at = links.aggregate(last=Max("expires_at"))["last"]
    if ends_at is not None:
        LeadNotification.queue_end(checkout, ends_at)


def pause_began_at(checkout: Checkout, now: datetime) -> datetime:
    """Return the start of the pause that is ending now, or `now` if no pause is ending.

    A dispute can begin before a refund or another dispute has ended, so pauses that overlap count as one pause. Must
    be called when the links are no longer paused.
    """
    since = now
    for begun, ended in sorted(_ended_pauses(checkout), key=itemgetter(1), reverse=True):
        if ended < since:
            break
        since = min(since, begun)
    return since


def _ended_pauses(checkout: Checkout) -> Iterator[tuple[datetime, datetime]]:
    """Yield the start and the end of each past pause that a refund or a dispute caused."""
    decided = Dispute.objects.filter(checkout_uuid=checkout.pk).annotate(ended=F("closed_at"))
    yield from decided.exclude(ended=None).values_list("created_at", "ended")
    # Only the order's history records when a refund failed.
    ends = Change.objects.filter(checkout=OuterRef("checkout"), origin=Status.REFUNDING)
    ends = ends.filter(created_at__gte=OuterRef("created_at")).order_by("created_at")
    refunds = checkout.refunds.annotate(ended=Subquery(ends.values("created_at")[:1]))
    yield from refunds.exclude(ended=None).values_list("created_at", "ended")
