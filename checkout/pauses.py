"""Pauses of pay links, while their order is being refunded or one of its cards is disputed.

Rule share.pauses.
"""

from collections.abc import Iterator
from datetime import datetime
from operator import itemgetter

from django.db.models import F, Max, OuterRef, Subquery

from checkout.models import Change, Checkout, LeadTold
from checkout.states import ShareStatus, Status
from payments import disputes
from payments.models import Dispute


def give_back(checkout: Checkout, now: datetime) -> None:
    """Extend the open links of an order by the pause that ends now, if one does.

    The lead is notified of the new end too. Must be called with the checkout locked, when no other pause is
    left.
    """
    if checkout.status != Status.CAPTURED or not checkout.has_mates or disputes.is_open(checkout.pk):
        return
    links = checkout.payment_requests.filter(status=ShareStatus.OPEN)
    links.update(expires_at=F("expires_at") + (now - began_at(checkout, now)))
    ends_at = links.aggregate(last=Max("expires_at"))["last"]
    if ends_at is not None:
        LeadTold.put_end(checkout, ends_at)


def began_at(checkout: Checkout, now: datetime) -> datetime:
    """Return the start of the pause of an order's links that has lasted without a break up to now.

    Must be called when the links are no longer paused. A dispute can begin before another dispute, or a
    refund, has ended. Pauses that overlap count as one pause.
    """
    since = now
    for begun, ended in sorted(_ended_pauses(checkout), key=itemgetter(1), reverse=True):
        if ended < since:
            break
        since = min(since, begun)
    return since


def _ended_pauses(checkout: Checkout) -> Iterator[tuple[datetime, datetime]]:
    """Yield the start and the end of each pause by a finished refund or a decided dispute."""
    decided = Dispute.objects.filter(checkout_uuid=checkout.pk).annotate(ended=F("closed_at"))
    yield from decided.exclude(ended=None).values_list("created_at", "ended")
    # A failed refund does not store the time of its end, but the order's history does.
    ends = Change.objects.filter(checkout=OuterRef("checkout"), origin=Status.REFUNDING)
    ends = ends.filter(created_at__gte=OuterRef("created_at")).order_by("created_at")
    refunds = checkout.refunds.annotate(ended=Subquery(ends.values("created_at")[:1]))
    yield from refunds.exclude(ended=None).values_list("created_at", "ended")
