"""The home page's figures: a merchant's payments and deliveries in a range of time, from the counted hours."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
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
    slots: list[Slot] = field(default_factory=list)
    fine: list[Slot] = field(default_factory=list)


def read(merchant: Merchant, span: str, currency: str = "") -> Picture:
    """Return the figures of a range, in the given currency or else the most used one.

    Costs the same however many checkouts there are.
    """
    count, step = RANGES[span]
    zone = ZoneInfo(merchant.time_zone)
    begins = _begins(clock.now().astimezone(zone), count, step)
    length = begins[-1] + step - begins[0]
    payments = list(_hours(PaymentHour, merchant, begins[0] - length).defer("hold_times"))
    deliveries = list(_hours(DeliveryHour, merchant, begins[0] - length).defer("durations"))
    by_use: dict[str, int] = {}
    for row in payments:
        by_use[row.currency] = by_use.get(row.currency, 0) + row.captured_count + row.lapsed_count
    currencies = sorted(by_use, key=lambda code: (-by_use[code], code))
    chosen = currency if currency in by_use else (currencies or ["GBP"])[0]
    mine = [row for row in payments if row.currency == chosen]
    since = begins[0] - length
    holds = _distributions(
        _hours(PaymentHour, merchant, since).filter(currency=chosen), "hold_times", begins[0]
    )
    answers = _distributions(_hours(DeliveryHour, merchant, since), "durations", begins[0])
    ends = [*begins[1:], begins[-1] + step]
    fine = [part for begin, end in zip(begins, ends, strict=True) for part in _parts(begin, end, FINE[span])]
    return Picture(
        range=span,
        currency=chosen,
        currencies=currencies,
        begin=begins[0],
        now=replace(
            _totals(mine, deliveries, begins[0], None),
            hold_times=holds.get(True, ()),
            durations=answers.get(True, ()),
        ),
        before=replace(
            _totals(mine, deliveries, since, begins[0]),
            hold_times=holds.get(False, ()),
            durations=answers.get(False, ()),
        ),
        slots=_slots(begins, mine, deliveries),
        fine=_slots(fine, [], deliveries),
    )


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


def _distributions(rows: QuerySet[Any], column: str, begin: datetime) -> dict[bool, list[int]]:
    """Return the sums of a column of counts: under True of the range, under False of the time before it."""
    sums = {f"slot_{slot}": Sum(F(f"{column}__{slot}")) for slot in range(histogram.SLOTS)}
    return {
        is_now: [count or 0 for count in counts]
        for is_now, *counts in rows.order_by()
        .annotate(is_now=Q(hour__gte=begin))
        .values_list("is_now")
        .annotate(**sums)
    }


def _totals(
    payments: Sequence[PaymentHour], deliveries: Sequence[DeliveryHour], begin: datetime, end: datetime | None
) -> Totals:
    paid = [row for row in payments if begin <= row.hour and (end is None or row.hour < end)]
    sent = [row for row in deliveries if begin <= row.hour and (end is None or row.hour < end)]
    return Totals(
        captured_count=sum(row.captured_count for row in paid),
        captured_amount=sum(row.captured_amount for row in paid),
        refunded_count=sum(row.refunded_count for row in paid),
        refunded_amount=sum(row.refunded_amount for row in paid),
        delivered=sum(row.delivered_count for row in sent),
        failed=sum(row.failed_count for row in sent),
    )


def _slots(
    begins: Sequence[datetime], payments: Sequence[PaymentHour], deliveries: Sequence[DeliveryHour]
) -> list[Slot]:
    slots = [Slot(begin) for begin in begins]
    for row in payments:
        slot = _slot_of(slots, row.hour)
        if slot:
            slot.captured += row.captured_count
            slot.cancelled += row.cancelled_count
            slot.lapsed += row.lapsed_count
            slot.captured_amount += row.captured_amount
    for sent in deliveries:
        slot = _slot_of(slots, sent.hour)
        if slot:
            slot.delivered += sent.delivered_count
            slot.failed += sent.failed_count
    return slots


def _slot_of(slots: Sequence[Slot], hour: datetime) -> Slot | None:
    """Return the last slot that had begun by then, None if none had."""
    at = bisect.bisect_right(slots, hour, key=lambda slot: slot.begin) - 1
    return slots[at] if at >= 0 else None
