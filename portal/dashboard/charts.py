"""Charts as SVG, without scripts or inline styles.

Horizontal positions are percentages, and vertical positions are pixels. The template converts the vertical
positions to multiples of the font size, so that a chart has room for larger text.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from django.utils import timezone
from django.utils.formats import date_format

from payments import money
from portal.dashboard.stats import Picture, Slot
from portal.templatetags.portal import span
from webhooks.health import AttemptSummary

HEIGHT = 132  # the height of the area for bars, in pixels
TOP = 22  # the space above the bars for the numbers, in pixels
LINE_TOP = TOP  # the line chart is as high as the bar chart next to it
HALF = 46  # the height above the middle line, and also below it, in pixels
LONGEST = 120.0  # the end of the scale: the seconds that a hold lasts
SHORTEST = 0.3  # the start of the scale, in seconds
MARKS = ((0.3, "≤ 0.3 s"), (1, "1 s"), (3, "3 s"), (10, "10 s"), (30, "30 s"), (120, "2 min"))
EXTRA_MARKS = (1, 10, 30)  # seconds


@dataclass(frozen=True)
class Bar:
    """A rectangle. x and width are percentages, y and height are pixels."""

    x: float
    y: float
    width: float
    height: float
    kind: str


@dataclass(frozen=True)
class Label:
    """A text at a position. `anchor` says whether it starts at the position, ends there, or is centred on it.

    A label with `is_extra` is hidden if the chart is too narrow or the text is too large.
    """

    x: float
    y: float
    words: str
    anchor: str = "middle"
    kind: str = ""
    is_extra: bool = False


@dataclass(frozen=True)
class Line:
    """A gridline and its label."""

    y: float
    words: str


@dataclass(frozen=True, kw_only=True)
class Chart:
    """The parts of a chart that a template draws. `heading` and `rows` show the same figures as a table."""

    heading: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    sentence: str
    is_empty: bool
    labels: list[Label]
    bars: list[Bar] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    points: str = ""
    dots: list[Label] = field(default_factory=list)

    @property
    def paths(self) -> list[tuple[str, str]]:
        """An SVG path for each kind of bar. The paths use a coordinate system with a width of 100.

        A separate element for each bar would make the template slow.
        """
        rectangles_by_kind: dict[str, list[str]] = {}
        for bar in self.bars:
            rectangle = f"M{bar.x} {bar.y}h{bar.width}v{bar.height}h-{bar.width}z"
            rectangles_by_kind.setdefault(bar.kind, []).append(rectangle)
        return [(kind, "".join(rectangles)) for kind, rectangles in rectangles_by_kind.items()]


def outcome_chart(picture: Picture) -> Chart:
    """Return the chart of ended holds by day or hour.

    A bar shows the captured holds at the bottom, the cancelled holds above them, and the lapsed holds at the
    top.
    """
    slots = picture.slots
    maximum = max((slot.total for slot in slots), default=0)
    highest = max(slots, key=lambda slot: slot.total)
    bars, labels = [], []
    width = 100 / len(slots)
    for index, slot in enumerate(slots):
        bars += (stack := _bars_of_slot(slot, index * width, width, maximum))
        if slot.total and (len(slots) <= 10 or slot is highest):
            x = _round(index * width + width / 2)
            top = _round(stack[-1].y - 6)
            labels.append(Label(x, top, f"{slot.total:,}", _anchor(x), "strong", slot is not highest))
    total = sum(slot.total for slot in slots)
    return Chart(
        bars=bars,
        labels=labels + _labels_below(picture, TOP + HEIGHT + 18),
        heading=("", "Captured", "Cancelled by you", "Hold lapsed"),
        rows=_table_rows(
            picture, lambda slot: [f"{slot.captured:,}", f"{slot.cancelled:,}", f"{slot.lapsed:,}"]
        ),
        is_empty=total == 0,
        sentence=f"{total:,} holds ended: {sum(slot.captured for slot in slots):,} captured.",
    )


def share_chart(picture: Picture) -> Chart:
    """Return the chart of shares by day or hour. A bar shows the paid shares at the bottom, and the others above.

    In the picture's slots, the paid shares count as captured, and the others as cancelled.
    """
    total, paid = sum(slot.total for slot in picture.slots), sum(slot.captured for slot in picture.slots)
    return replace(
        outcome_chart(picture),
        heading=("", "Paid", "Not paid yet, or ended"),
        rows=_table_rows(picture, lambda slot: [f"{slot.captured:,}", f"{slot.cancelled:,}"]),
        sentence=f"{total:,} shares: {paid:,} paid.",
    )


def _bars_of_slot(slot: Slot, x: float, width: float, maximum: int) -> list[Bar]:
    """Return the bars of a slot, starting with the lowest."""
    bars, bottom = [], float(TOP + HEIGHT)
    for kind, count in (("1", slot.captured), ("2", slot.cancelled), ("3", slot.lapsed)):
        if count:
            height = max(2.0, count / maximum * HEIGHT)
            bars.append(_bar(x + width * 0.15, bottom - height, width * 0.7, height, kind))
            bottom -= height + 1
    return bars


def volume_chart(picture: Picture) -> Chart:
    """Return the chart of captured amounts by day or hour. It is a line with a label at its highest point."""
    amounts = [slot.captured_amount for slot in picture.slots]
    maximum = max(amounts, default=0)
    ceiling = _round_up(maximum)
    width = 100 / len(amounts)
    positions = [
        (index * width + width / 2, LINE_TOP + HEIGHT - (amount / ceiling * HEIGHT if ceiling else 0))
        for index, amount in enumerate(amounts)
    ]
    dots = []
    if maximum:
        x, y = positions[amounts.index(maximum)]
        dots.append(Label(_round(x), _round(y), money.display(maximum, picture.currency), _side(x)))
    return Chart(
        labels=_labels_below(picture, LINE_TOP + HEIGHT + 18),
        lines=list(_grid_lines(ceiling, picture.currency)) if maximum else [],
        points=" ".join(f"{_round(x)},{_round(y)}" for x, y in positions),
        dots=dots,
        heading=("", "Captured"),
        rows=_table_rows(picture, lambda slot: [money.display(slot.captured_amount, picture.currency)]),
        is_empty=maximum == 0,
        sentence=f"{money.display(sum(amounts), picture.currency)} captured.",
    )


def _grid_lines(ceiling: int, currency: str) -> Iterator[Line]:
    """Yield a line at the top of the chart and a line at half of its height, both with their amount."""
    for share in (1.0, 0.5):
        value = money.display(int(ceiling * share), currency)
        yield Line(_round(LINE_TOP + HEIGHT - HEIGHT * share), value.removesuffix(".00"))


def hold_chart(picture: Picture) -> Chart:
    """Return the chart of the times from hold to capture: median, 95% and 99% on a logarithmic scale."""
    now = picture.now
    median, p95, p99 = now.hold(0.5), now.hold(0.95), now.hold(0.99)
    labels = _scale_labels()
    heading = ("", "Time from hold to capture")
    if median is None or p95 is None or p99 is None:
        return Chart(labels=labels, heading=heading, rows=[], is_empty=True, sentence="No captures.")
    first = _x_of(now.hold(0.05) or SHORTEST)
    return Chart(
        bars=[
            _bar(first, 41, _x_of(p95) - first, 14, "1"),
            _bar(_x_of(p95), 45, max(0.0, _x_of(p99) - _x_of(p95)), 6, "2"),
        ],
        labels=[
            *labels,
            Label(_x_of(median), 32, f"median {span(median)}", _side(_x_of(median)), "strong"),
            Label(_x_of(p95), 74, f"95% in {span(p95)}", _side(_x_of(p95))),
        ],
        dots=[Label(_x_of(median), 48, f"median {span(median)}")],
        heading=heading,
        rows=[("Half of them within", span(median)), ("95% within", span(p95)), ("99% within", span(p99))],
        is_empty=False,
        sentence=f"Median {span(median)}, 99% in {span(p99)}.",
    )


def _scale_labels() -> list[Label]:
    """Return the labels of the scale.

    The first label starts at the left edge. If it were centred, it would touch the second label in a narrow
    chart.
    """
    (_, shortest), *longer = MARKS
    return [Label(0, 98, shortest, "start")] + [
        Label(_x_of(seconds), 98, words, _anchor(_x_of(seconds)), is_extra=seconds in EXTRA_MARKS)
        for seconds, words in longer
    ]


def attempt_chart(picture: Picture, latest: AttemptSummary | None) -> Chart:
    """Return the chart of delivery attempts: delivered attempts above the middle line, failed ones below it.

    `latest` has the endpoint's response times. It is None if the merchant has no endpoint.
    """
    maximum = max((max(slot.delivered, slot.failed) for slot in picture.slots), default=0)
    width = 100 / len(picture.slots)
    bars = []
    for index, slot in enumerate(picture.slots):
        x = index * width + width * 0.15
        if slot.delivered:
            height = max(2.0, slot.delivered / maximum * HALF)
            bars.append(_bar(x, 16 + HALF - height, width * 0.7, height, "2"))
        if slot.failed:
            height = max(2.0, slot.failed / maximum * HALF)
            bars.append(_bar(x, 16 + HALF + 1, width * 0.7, height, "4"))
    return Chart(
        bars=bars,
        labels=_labels_below(picture, 16 + 2 * HALF + 20),
        heading=("", "Answered 2xx", "Failed"),
        rows=_table_rows(picture, lambda slot: [f"{slot.delivered:,}", f"{slot.failed:,}"]),
        is_empty=maximum == 0,
        sentence=_answer_sentence(latest) if maximum else "No deliveries.",
    )


def _answer_sentence(latest: AttemptSummary | None) -> str:
    """Return a sentence about the endpoint's response times in the last 24 hours, as on the webhooks page."""
    if latest is None or latest.p50_ms is None or latest.p95_ms is None:
        return "Your endpoint gave no answer in the last 24 hours."
    median, p95 = (span(ms / 1000).removeprefix("under ") for ms in (latest.p50_ms, latest.p95_ms))
    return f"In the last 24 hours, half of your endpoint’s answers came within {median}, 95% within {p95}."


def days_words(picture: Picture) -> str:
    """Return the days that a picture covers in words, such as "15 to 21 November"."""
    last = timezone.localtime()
    if picture.range == "24h":
        return f"since {date_format(picture.begin, 'j F, H:i')}"
    is_same = picture.begin.month == last.month
    return f"{date_format(picture.begin, 'j' if is_same else 'j F')} to {date_format(last, 'j F')}"


def percent(share: float | None) -> str:
    """Return a share as text, such as "98.5%". It is "100%" only if the share is exactly 1."""
    if share is None:
        return "–"
    return "100%" if share == 1 else f"{min(share * 100, 99.9):.1f}%"


def _x_of(seconds: float) -> float:
    """Return the horizontal position of a duration on the logarithmic scale, from 4 to 96 percent."""
    share = math.log(min(max(seconds, SHORTEST), LONGEST) / SHORTEST) / math.log(LONGEST / SHORTEST)
    return _round(4 + 92 * share)


def _anchor(x: float) -> str:
    return "start" if x < 12 else "end" if x > 88 else "middle"


def _side(x: float) -> str:
    """Return the anchor that makes a long label extend to the side with more room."""
    return "start" if x < 34 else "end" if x > 66 else "middle"


def _round_up(maximum: int) -> int:
    """Return a round number that is at least the maximum, and whose half is round too."""
    if maximum <= 0:
        return 0
    size = 10 ** math.floor(math.log10(maximum))
    return next(int(step * size) for step in (1, 2, 4, 6, 8, 10) if step * size >= maximum)


def _labels_below(picture: Picture, y: float) -> list[Label]:
    """Return the labels below a chart, each centred below its slot.

    In a range of 7 days, each day has a label. In 30 days, every seventh day has one, and in 24 hours, every
    sixth hour. The last slot always has the label "now" or "today". In ranges of 30 days and 24 hours, this
    label ends at the right edge. Every second label before it is an extra one.
    """
    step, date_form = {"24h": (6, "H:i"), "7d": (1, "D"), "30d": (7, "j M")}[picture.range]
    last_text = "now" if picture.range == "24h" else "today"
    width = 100 / len(picture.slots)
    labels: list[Label] = []
    for index, slot in list(enumerate(picture.slots))[::-step]:
        is_last = index == len(picture.slots) - 1
        text = last_text if is_last else date_format(slot.begin, date_form)
        is_at_edge = is_last and step > 1
        x, anchor = (100.0, "end") if is_at_edge else (_round(index * width + width / 2), "middle")
        labels.append(Label(x, y, text, anchor, is_extra=len(labels) % 2 == 1))
    return labels[::-1]


def _table_rows(picture: Picture, cells: Callable[[Slot], list[str]]) -> list[tuple[str, ...]]:
    date_form = "j M, H:i" if picture.range == "24h" else "D j M"
    return [(date_format(slot.begin, date_form), *cells(slot)) for slot in picture.slots]


def _bar(x: float, y: float, width: float, height: float, kind: str) -> Bar:
    return Bar(_round(x), _round(y), _round(width), _round(height), kind)


def _round(number: float) -> float:
    return round(number, 2)
