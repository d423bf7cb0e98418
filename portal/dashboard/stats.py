"""The home page's figures: a merchant's payments and deliveries in a range of time, from the counted hours."""

import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import F, Q, QuerySet, Sum

from config.lib import clock
from payments.models import Merchant
from portal.dashboard import histogram
from portal.dashboard.histogram import ANSWER_MS, HOLD_SECONDS
from portal.models import DeliveryHour, PaymentHour

RANGES = {"24h": (24, timedelta(hours=1)), "7d": (7, timedelta(days=1)), "30d": (30, timedelta(days=1))}
FINE = {"24h": timedelta(hours=1), "7d": timedelta(hours=2), "30d": timedelta(hours=6)}
PAID = (
    *("hour", "currency", "captured_count", "captured_amount", "cancelled_count", "lapsed_count"),
    *("refunded_count", "refunded_amount"),
)
SENT = ("hour", "delivered_count", "failed_count")


@dataclass
class Slot:
    """An hour or a day of the chart."""

    begin: datetime
    captured: int = 0
    cancelled: int = 0
    lapsed: int = 0
    captured_amount: int = 0
    delivered: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.captured + self.cancelled + self.lapsed


@dataclass
class Totals:
    """The sums of a range, and how long holds and answers took (seconds; None where nothing happened)."""

    captured_count: int = 0
    captured_amount: int = 0
    refunded_count: int = 0
    refunded_amount: int = 0
    delivered: int = 0
    failed: int = 0
    hold_times: Sequence[int] = ()
    durations: Sequence[int] = ()

    def hold(self, share: float) -> float | None:
        return HOLD_SECONDS.percentile(self.hold_times, share)

    def answer(self, share: float) -> float | None:
        found = ANSWER_MS.percentile(self.durations, share)
        return None if found is None else found / 1000

    @property
    def success(self) -> float | None:
        attempts = self.delivered + self.failed
        return self.delivered / attempts if attempts else None


@dataclass
class Picture:
    """All that the home page draws: a range, the one before it, and its slots."""

    range: str
    currency: str
    currencies: list[str]
    begin: datetime
    now: Totals
    before: Totals
    slots: list[Slot]
    fine: list[Slot]


def read(merchant: Merchant, span: str, currency: str = "") -> Picture:
    """Return the figures of a range, in the given currency or else the most used one.

    Costs the same however many checkouts there are.
    """
    count, step = RANGES[span]
    begins = _begins(clock.now().astimezone(ZoneInfo(merchant.time_zone)), count, step)
    begin, end = begins[0], begins[-1] + step
    paid = _hours(PaymentHour, merchant, begin - (end - begin))
    sent = _hours(DeliveryHour, merchant, begin - (end - begin))
    # Two months have three thousand hours: as tuples they cost a third of what objects of the models do.
    payments = list(paid.values_list(*PAID, named=True))
    deliveries = list(sent.values_list(*SENT, named=True))
    by_use: Counter[str] = Counter()
    for row in payments:
        by_use[row.currency] += row.captured_count + row.lapsed_count
    currencies = sorted(by_use, key=lambda code: (-by_use[code], code))
    chosen = currency if currency in by_use else (currencies or ["GBP"])[0]
    mine = [row for row in payments if row.currency == chosen]
    before, now = _totals(mine, deliveries, begin)
    for is_now, counts in _distributions(paid.filter(currency=chosen), "hold_times", begin):
        (now if is_now else before).hold_times = counts
    for is_now, counts in _distributions(sent, "durations", begin):
        (now if is_now else before).durations = counts
    fine = [part for start, stop in pairwise([*begins, end]) for part in _parts(start, stop, FINE[span])]
    slots = _slots(begins, mine, deliveries)
    return Picture(span, chosen, currencies, begin, now, before, slots, _slots(fine, [], deliveries))


def _begins(now: datetime, count: int, step: timedelta) -> list[datetime]:
    """Return the starts of the last hours or days in the merchant's time zone; a day may have 23 or 25 hours."""
    if step < timedelta(days=1):
        hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        return [(hour - step * back).astimezone(now.tzinfo) for back in reversed(range(count))]
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return [day - timedelta(days=back) for back in reversed(range(count))]


def _parts(begin: datetime, end: datetime, step: timedelta) -> list[datetime]:
    """Return the starts of the parts of a day or an hour."""
    found, moment = [], begin.astimezone(UTC)
    while moment < end:
        found.append(moment.astimezone(begin.tzinfo))
        moment += step
    return found


def _hours(model: Any, merchant: Merchant, since: datetime) -> QuerySet[Any]:
    rows: QuerySet[Any] = model.objects.filter(merchant=merchant, hour__gte=since).order_by("hour")
    return rows


def _distributions(rows: QuerySet[Any], column: str, begin: datetime) -> Iterator[tuple[bool, list[int]]]:
    """Yield the sums of a column of counts: with True those of the range, with False of the time before it."""
    sums = {f"slot_{slot}": Sum(F(f"{column}__{slot}")) for slot in range(histogram.SLOTS)}
    grouped = rows.order_by().annotate(is_now=Q(hour__gte=begin)).values_list("is_now").annotate(**sums)
    for is_now, *counts in grouped:
        yield is_now, [count or 0 for count in counts]


def _totals(payments: Sequence[Any], deliveries: Sequence[Any], begin: datetime) -> tuple[Totals, Totals]:
    """Return the sums of the time before the range, and of the range."""
    before, now = Totals(), Totals()
    for row in payments:
        totals = now if row.hour >= begin else before
        totals.captured_count += row.captured_count
        totals.captured_amount += row.captured_amount
        totals.refunded_count += row.refunded_count
        totals.refunded_amount += row.refunded_amount
    for sent in deliveries:
        totals = now if sent.hour >= begin else before
        totals.delivered += sent.delivered_count
        totals.failed += sent.failed_count
    return before, now


def _slots(begins: Sequence[datetime], payments: Sequence[Any], deliveries: Sequence[Any]) -> list[Slot]:
    """Return a slot for each beginning, with the hours from then on until the next."""
    slots = [Slot(begin) for begin in begins]
    for row in payments:
        if at := bisect.bisect_right(begins, row.hour):
            slot = slots[at - 1]
            slot.captured += row.captured_count
            slot.cancelled += row.cancelled_count
            slot.lapsed += row.lapsed_count
            slot.captured_amount += row.captured_amount
    for sent in deliveries:
        if at := bisect.bisect_right(begins, sent.hour):
            slot = slots[at - 1]
            slot.delivered += sent.delivered_count
            slot.failed += sent.failed_count
    return slots
