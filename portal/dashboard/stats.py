"""The home page's figures: a merchant's payments and deliveries in a time range, from the hourly counts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from config.lib import clock
from config.lib.database import queries
from payments.models import Merchant
from portal import statements
from portal.dashboard.histogram import HOLD_SECONDS

RANGES = {"24h": (24, timedelta(hours=1)), "7d": (7, timedelta(days=1)), "30d": (30, timedelta(days=1))}


@dataclass
class Slot:
    """An hour or a day in the chart."""

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
    """The sums for a range, and a histogram of the times from hold to capture."""

    captured_count: int = 0
    captured_amount: int = 0
    refunded_count: int = 0
    refunded_amount: int = 0
    delivered: int = 0
    failed: int = 0
    hold_times: Sequence[int] = ()

    def hold(self, share: float) -> float | None:
        """Return a percentile of the times from hold to capture, in seconds, or None without data."""
        return HOLD_SECONDS.percentile(self.hold_times, share)

    @property
    def attempts(self) -> int:
        return self.delivered + self.failed

    @property
    def success(self) -> float | None:
        return self.delivered / self.attempts if self.attempts else None


@dataclass
class Picture:
    """The data for the home page's charts.

    `now` has the totals for the time range, and `before` has the totals for the previous range. `slots` has
    the hours or days in the time range.
    """

    range: str
    currency: str
    currencies: list[str]
    begin: datetime
    now: Totals
    before: Totals
    slots: list[Slot]


def range_begin(merchant: Merchant, span: str) -> datetime:
    """Return the start of a range that ends now, in the merchant's time zone."""
    return _slot_starts(clock.now().astimezone(ZoneInfo(merchant.time_zone)), *RANGES[span])[0]


def read_stats(merchant: Merchant, span: str, currency: str = "") -> Picture:
    """Return the figures for a range. If `currency` is not valid, use the merchant's most used currency.

    The cost does not depend on the number of checkouts.
    """
    count, step = RANGES[span]
    begins = _slot_starts(clock.now().astimezone(ZoneInfo(merchant.time_zone)), count, step)
    begin, end = begins[0], begins[-1] + step
    parameters = {"merchant": merchant.pk, "since": begin - (end - begin), "begin": begin}
    with_begins = parameters | {"begins": begins}
    payment_sums = [_PaymentSums._make(row) for row in queries.rows(statements.SUM_PAYMENTS, with_begins)]
    delivery_sums = [_DeliverySums._make(row) for row in queries.rows(statements.SUM_DELIVERIES, with_begins)]
    use_counts: Counter[str] = Counter()
    for row in payment_sums:
        use_counts[row.currency] += row.captured_count + row.lapsed_count
    currencies = sorted(use_counts, key=lambda code: (-use_counts[code], code))
    chosen = currency if currency in use_counts else (currencies or ["GBP"])[0]
    currency_sums = [row for row in payment_sums if row.currency == chosen]
    before, now = _sum_ranges(currency_sums, delivery_sums)
    for is_now, *counts in queries.rows(statements.SUM_HOLD_TIMES, parameters | {"currency": chosen}):
        (now if is_now else before).hold_times = [count or 0 for count in counts]
    return Picture(
        span, chosen, currencies, begin, now, before, _build_slots(begins, currency_sums, delivery_sums)
    )


def _slot_starts(now: datetime, count: int, step: timedelta) -> list[datetime]:
    """Return the start times of the last hours or days, in the merchant's time zone.

    A day can have 23 or 25 hours.
    """
    if step < timedelta(days=1):
        hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        return [(hour - step * index).astimezone(now.tzinfo) for index in reversed(range(count))]
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return [day - timedelta(days=index) for index in reversed(range(count))]


class _PaymentSums(NamedTuple):
    """How the holds in one slot and currency ended. Slot 0 is the whole previous range."""

    slot: int
    currency: str
    captured_count: int
    captured_amount: int
    cancelled_count: int
    lapsed_count: int
    refunded_count: int
    refunded_amount: int


class _DeliverySums(NamedTuple):
    """The numbers of delivery attempts in one slot. Slot 0 is the whole previous range."""

    slot: int
    delivered_count: int
    failed_count: int


def _sum_ranges(
    payment_sums: Sequence[_PaymentSums], delivery_sums: Sequence[_DeliverySums]
) -> tuple[Totals, Totals]:
    """Return the sums for the previous range and the sums for the current range."""
    before, now = Totals(), Totals()
    for row in payment_sums:
        totals = now if row.slot else before
        totals.captured_count += row.captured_count
        totals.captured_amount += row.captured_amount
        totals.refunded_count += row.refunded_count
        totals.refunded_amount += row.refunded_amount
    for attempts in delivery_sums:
        totals = now if attempts.slot else before
        totals.delivered += attempts.delivered_count
        totals.failed += attempts.failed_count
    return before, now


def _build_slots(
    begins: Sequence[datetime], payment_sums: Sequence[_PaymentSums], delivery_sums: Sequence[_DeliverySums]
) -> list[Slot]:
    slots = [Slot(begin) for begin in begins]
    for row in payment_sums:
        if row.slot:
            slot = slots[row.slot - 1]
            slot.captured, slot.captured_amount = row.captured_count, row.captured_amount
            slot.cancelled, slot.lapsed = row.cancelled_count, row.lapsed_count
    for attempts in delivery_sums:
        if attempts.slot:
            slot = slots[attempts.slot - 1]
            slot.delivered, slot.failed = attempts.delivered_count, attempts.failed_count
    return slots
