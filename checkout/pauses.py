"""Pauses of pay links: while their order is being refunded, or a card of it is disputed (rule share.pauses)."""

from collections.abc import Iterator
from datetime import datetime
from operator import itemgetter

from django.db.models import F, Max, OuterRef, Subquery

from checkout.models import Change, Checkout, LeadTold
from checkout.states import ShareStatus, Status
from payments import disputes
from payments.models import Dispute


def give_back(checkout: Checkout, now: datetime) -> None:
    """Let open links end later by the pause that ends now, if one does; the lead is told of that end too.

    Must be called with the checkout locked, when nothing else pauses it.
    """
    if checkout.status != Status.CAPTURED or not checkout.has_mates or disputes.is_open(checkout.pk):
        return
    links = checkout.payment_requests.filter(status=ShareStatus.OPEN)
    links.update(expires_at=F("expires_at") + (now - began_at(checkout, now)))
    ends_at = links.aggregate(last=Max("expires_at"))["last"]
    if ends_at is not None:
        LeadTold.put_end(checkout, ends_at)


def began_at(checkout: Checkout, now: datetime) -> datetime:
    """Return since when an order's links were paused without a break up to now; ask when nothing pauses them any more.

    A dispute may begin before another, or a refund, has ended: the time that they share is one pause.
    """
    since = now
    for begun, ended in sorted(_ended(checkout), key=itemgetter(1), reverse=True):
        if ended < since:
            break
        since = min(since, begun)
    return since


def _ended(checkout: Checkout) -> Iterator[tuple[datetime, datetime]]:
    """Yield from when to when each refund that is over, and each decided dispute, has paused the order's links."""
    decided = Dispute.objects.filter(checkout_uuid=checkout.pk).annotate(ended=F("closed_at"))
    yield from decided.exclude(ended=None).values_list("created_at", "ended")
    # a refund that fails keeps no time of its end, the order's history does
    ends = Change.objects.filter(checkout=OuterRef("checkout"), origin=Status.REFUNDING)
    ends = ends.filter(created_at__gte=OuterRef("created_at")).order_by("created_at")
    refunds = checkout.refunds.annotate(ended=Subquery(ends.values("created_at")[:1]))
    yield from refunds.exclude(ended=None).values_list("created_at", "ended")
