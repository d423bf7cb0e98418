"""The home page's figures: a merchant's payments and deliveries in a time range, from counted hours."""

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
from portal.dashboard.histogram import ANSWER_MS, HOLD_SECONDS

RANGES = {"24h": (24, timedelta(hours=1)), "7d": (7, timedelta(days=1)), "30d": (30, timedelta(days=1))}


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
    """The sums of a range, and histograms of the times from hold to capture and of the response times.

    `hold` and `answer` return seconds, or None without data. Totals of a previous range have no response
    times.
    """

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
    def attempts(self) -> int:
        return self.delivered + self.failed

    @property
    def success(self) -> float | None:
        return self.delivered / self.attempts if self.attempts else None


@dataclass
class Picture:
    """The data of the home page's charts.

    `now` has the totals of the time range, `before` those of the previous range. `slots` are its hours or
    days.
    """

    range: str
    currency: str
    currencies: list[str]
    begin: datetime
    now: Totals
    before: Totals
    slots: list[Slot]


def range_begin(merchant: Merchant, span: str) -> datetime:
    """Return the begin of a range that ends now, in the merchant's time zone."""
    return _slot_starts(clock.now().astimezone(ZoneInfo(merchant.time_zone)), *RANGES[span])[0]


def read_stats(merchant: Merchant, span: str, currency: str = "") -> Picture:
    """Return the figures of a range, in the given currency or in the most used currency.

    The cost is the same no matter how many checkouts there are.
    """
    count, step = RANGES[span]
    begins = _slot_starts(clock.now().astimezone(ZoneInfo(merchant.time_zone)), count, step)
    begin, end = begins[0], begins[-1] + step
    of = {"merchant": merchant.pk, "since": begin - (end - begin), "begin": begin}
    paid = [_PaymentSums._make(row) for row in queries.rows(statements.SUM_PAYMENTS, of | {"begins": begins})]
    sent = [
        _DeliverySums._make(row) for row in queries.rows(statements.SUM_DELIVERIES, of | {"begins": begins})
    ]
    by_use: Counter[str] = Counter()
    for row in paid:
        by_use[row.currency] += row.captured_count + row.lapsed_count
    currencies = sorted(by_use, key=lambda code: (-by_use[code], code))
    chosen = currency if currency in by_use else (currencies or ["GBP"])[0]
    mine = [row for row in paid if row.currency == chosen]
    before, now = _totals(mine, sent)
    for is_now, *counts in queries.rows(statements.SUM_HOLD_TIMES, of | {"currency": chosen}):
        (now if is_now else before).hold_times = [count or 0 for count in counts]
    for slots in queries.rows(statements.SUM_DURATIONS, of):
        now.durations = [count or 0 for count in slots]
    return Picture(span, chosen, currencies, begin, now, before, _slots(begins, mine, sent))


def _slot_starts(now: datetime, count: int, step: timedelta) -> list[datetime]:
    """Return the starts of the last hours or days in the merchant's time zone.

    A day can have 23 or 25 hours.
    """
    if step < timedelta(days=1):
        hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        return [(hour - step * back).astimezone(now.tzinfo) for back in reversed(range(count))]
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return [day - timedelta(days=back) for back in reversed(range(count))]


class _PaymentSums(NamedTuple):
    """The outcomes of the holds in one slot and currency. Slot 0 is the whole previous range."""

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


def _totals(paid: Sequence[_PaymentSums], sent: Sequence[_DeliverySums]) -> tuple[Totals, Totals]:
    """Return the sums of the previous range, and of the range."""
    before, now = Totals(), Totals()
    for row in paid:
        totals = now if row.slot else before
        totals.captured_count += row.captured_count
        totals.captured_amount += row.captured_amount
        totals.refunded_count += row.refunded_count
        totals.refunded_amount += row.refunded_amount
    for attempts in sent:
        totals = now if attempts.slot else before
        totals.delivered += attempts.delivered_count
        totals.failed += attempts.failed_count
    return before, now


def _slots(
    begins: Sequence[datetime], paid: Sequence[_PaymentSums], sent: Sequence[_DeliverySums]
) -> list[Slot]:
    slots = [Slot(begin) for begin in begins]
    for row in paid:
        if row.slot:
            slot = slots[row.slot - 1]
            slot.captured, slot.captured_amount = row.captured_count, row.captured_amount
            slot.cancelled, slot.lapsed = row.cancelled_count, row.lapsed_count
    for attempts in sent:
        if attempts.slot:
            slot = slots[attempts.slot - 1]
            slot.delivered, slot.failed = attempts.delivered_count, attempts.failed_count
    return slots
