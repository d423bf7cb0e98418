"""Figures about orders that customers split with mates: counts and sums, without names and phone numbers.

Rule portal.groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Aggregate,
    Count,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Sum,
)
from django.db.models.functions import Trunc

from checkout.models import Checkout, PaymentRequest
from checkout.states import PAID, SHARE_OUTSTANDING, SHARE_PAID, Status
from config.lib import clock
from hosted_page.models import OptIn
from payments import disputes, safe_answers
from payments.models import Dispute, Merchant
from portal import badges
from portal.badges import Badge
from portal.dashboard.stats import Picture, Slot
from portal.orders.disputed import ORDER_BADGES

LOOK_BACK = timedelta(days=90)  # older orders do not count for the times until mates pay
STEPS = {
    "an hour": timedelta(hours=1),
    "a day": timedelta(days=1),
    "a week": timedelta(days=7),
    "14 days": timedelta(days=14),
}
ALL_PAID = Badge("done", "check", "All paid")
COLLECTING = Badge("move", "ring", "Collecting")
LINKS_ENDED = Badge("void", "clock", "Links ended")
IS_SPLIT = Q(people__gt=1)
BY_ITEM = Exists(PaymentRequest.objects.filter(checkout=OuterRef("pk")).exclude(units=[]))


class Median(Aggregate):
    """The SQL aggregate for the median of an expression."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()


@dataclass(frozen=True)
class GroupFigures:
    """The figures for a period. Amounts are in minor units of one currency.

    - `captured`, `orders`: captured orders, and the split ones among them
    - `shares`, `paid`: the mates' shares of the split orders, and the paid ones among them
    - `share_amount`: the sum of all these shares
    - `paid_amount`: the sum of the paid shares, without refunded ones
    - `opted_in`: mates who ticked the marketing box
    - `equal`, `by_item`: orders that were split equally, and orders that were split by item
    """

    captured: int
    orders: int
    shares: int
    paid: int
    share_amount: int
    paid_amount: int
    opted_in: int
    equal: int
    by_item: int


def split_orders(merchant: Merchant) -> QuerySet[Checkout]:
    """Return the orders of a merchant that were split with mates."""
    return Checkout.objects.filter(IS_SPLIT, merchant=merchant)


def read_figures(merchant: Merchant, currency: str, begin: datetime, end: datetime) -> GroupFigures:
    """Return the figures for the orders that were created in a period, in one currency."""
    captured = Checkout.objects.filter(
        merchant=merchant, currency=currency, created_at__gte=begin, created_at__lt=end, status__in=PAID
    )
    orders = captured.filter(IS_SPLIT)
    is_paid = Q(paid_at__isnull=False)
    shares = PaymentRequest.objects.filter(checkout__in=orders)
    sums: dict[str, Any] = shares.aggregate(
        shares=Count("pk"),
        paid=Count("pk", filter=is_paid),
        share_amount=Sum("amount"),
        paid_amount=Sum("amount", filter=Q(status__in=SHARE_PAID)),
    )
    opted_in = OptIn.objects.filter(checkout_uuid__in=orders.values("pk"), share_uuid__isnull=False)
    return GroupFigures(
        # One statement counts both, so that an order cannot be in only one of them.
        **captured.aggregate(captured=Count("pk"), orders=Count("pk", filter=IS_SPLIT)),
        shares=sums["shares"],
        paid=sums["paid"],
        share_amount=sums["share_amount"] or 0,
        paid_amount=sums["paid_amount"] or 0,
        opted_in=opted_in.values("share_uuid").distinct().count(),
        equal=_count_equal(orders.exclude(BY_ITEM), safe_answers.amount_rule(currency).step),
        by_item=orders.filter(BY_ITEM).count(),
    )


def _count_equal(orders: QuerySet[Checkout], step: int) -> int:
    """Return how many orders were split equally: the mates' shares are equal, and the lead has the rest.

    The lead's part can be larger by the remainder of the division, which is less than `step` for each person.
    """
    current = Q(payment_requests__replaced_at=None)
    low = Min("payment_requests__amount", filter=current)
    high = Max("payment_requests__amount", filter=current)
    parts = orders.annotate(low=low, high=high, whole=F("people") * F("high")).filter(low=F("high"))
    return parts.filter(amount__gte=F("whole"), amount__lt=F("whole") + F("people") * step).count()


def picture_of_shares(merchant: Merchant, picture: Picture) -> Picture:
    """Return the picture with the shares by day or hour. Paid shares count as captured, others as cancelled."""
    begins = [slot.begin for slot in picture.slots]
    kind = "hour" if picture.range == "24h" else "day"
    orders = split_orders(merchant).filter(
        currency=picture.currency, created_at__gte=picture.begin, captured_at__isnull=False
    )
    rows = PaymentRequest.objects.filter(checkout__in=orders)
    by_slot = rows.annotate(slot=Trunc("checkout__created_at", kind, tzinfo=begins[0].tzinfo)).values("slot")
    counts = by_slot.annotate(shares=Count("pk"), paid=Count("pk", filter=Q(paid_at__isnull=False)))
    counts_by_slot = {row["slot"]: row for row in counts}
    slots = []
    for begin in begins:
        row = counts_by_slot.get(begin, {"shares": 0, "paid": 0})
        slots.append(Slot(begin, captured=row["paid"], cancelled=row["shares"] - row["paid"]))
    return replace(picture, slots=slots)


def read_payment_times(merchant: Merchant) -> dict[str, Any]:
    """Return which percentage of the ended shares was paid within each time in STEPS, and the median time.

    `steps` has pairs of a time in words and the percentage. It is empty if no share has ended.
    """
    now = clock.now()
    orders = split_orders(merchant).filter(created_at__gte=now - LOOK_BACK, captured_at__isnull=False)
    ended = PaymentRequest.objects.filter(checkout__in=orders, expires_at__lte=now)
    waited = ExpressionWrapper(F("paid_at") - F("checkout__captured_at"), output_field=DurationField())
    ended = ended.annotate(waited=waited)
    within = {
        f"step_{index}": Count("pk", filter=Q(waited__lte=step)) for index, step in enumerate(STEPS.values())
    }
    counts: dict[str, Any] = ended.aggregate(all=Count("pk"), median=Median("waited"), **within)
    steps = [
        (name, round(100 * counts[f"step_{index}"] / (counts["all"] or 1)))
        for index, name in enumerate(STEPS)
    ]
    return {"steps": steps if counts["all"] else [], "median": counts["median"]}


def wait_words(wait: timedelta) -> str:
    """Return the time until a payment in words, such as "32 min", "3 h 10" or "2 days"."""
    minutes, seconds = divmod(round(wait.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} days"
    if hours:
        return f"{hours} h {minutes:02}"
    return f"{minutes} min" if minutes else f"{seconds} s"


def with_open_dispute(rows: QuerySet[Checkout]) -> QuerySet[Checkout]:
    """Add `has_open_dispute` to each order, because `badge_of` needs it."""
    return rows.annotate(has_open_dispute=Exists(disputes.open_disputes_of(OuterRef("pk"))))


def badge_of(checkout: Checkout, shares: Sequence[PaymentRequest]) -> Badge:
    """Return the badge for the state of a split order's group. The order must be read with `with_open_dispute`."""
    if checkout.status != Status.CAPTURED:
        return badges.of_checkout(checkout)
    annotated: Any = checkout
    if annotated.has_open_dispute:
        return ORDER_BADGES[Dispute.Status.OPEN]
    if all(share.paid_at is not None for share in shares):
        return ALL_PAID
    is_open = any(share.status in SHARE_OUTSTANDING for share in shares)
    return COLLECTING if is_open else LINKS_ENDED


def amount_from_mates(shares: Sequence[PaymentRequest]) -> int:
    """Return the sum of the shares that mates have paid, without refunded shares, in minor units."""
    return sum(share.amount for share in shares if share.status in SHARE_PAID)


def all_paid_after(checkout: Checkout, shares: Sequence[PaymentRequest]) -> timedelta | None:
    """Return the time from the capture to the last mate's payment. Return None unless all mates have paid."""
    times = [share.paid_at for share in shares if share.paid_at is not None]
    if checkout.captured_at is None or not times or len(times) < len(shares):
        return None
    return max(times) - checkout.captured_at
