"""Calculates the bar of a split bill, with one part per person. The width of a part shows the person's amount."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

# In per cent of the bar. With the gap next to it, a part of this width is just visible on a phone.
NARROWEST = 4.0
# The smallest width, in per cent of the bar, that has room for a letter.
LETTER = 7.0


class Part(NamedTuple):
    """One person's part of the bar: its start and its width in per cent of the bar, and its letter.

    A part with the width 0 is invisible.
    """

    x: str
    width: str
    label: str


def parts(people: Sequence[tuple[str, int]]) -> list[Part]:
    """Return the part of each person. Together, the parts fill the bar.

    `people` has the letter and the amount of each person. static/js/split.js draws the same widths in the
    browser.
    """
    bar_places = places([amount for _, amount in people])
    return [
        Part(f"{x:.3f}%", f"{width:.3f}%", label if width >= LETTER else "")
        for (label, _), (x, width) in zip(people, bar_places, strict=True)
    ]


def places(amounts: Sequence[int]) -> list[tuple[float, float]]:
    """Return the start and the width of the part for each amount, in per cent of the bar."""
    bar_widths = widths(amounts)
    return list(zip(accumulate(bar_widths[:-1], initial=0.0), bar_widths, strict=True)) if bar_widths else []


def widths(amounts: Sequence[int]) -> list[float]:
    """Return the width of the part for each amount, in per cent of the bar. An amount of 0 has the width 0.

    If the smallest part would be too narrow to see, the widths are made more equal until it is wide enough.
    Equal amounts keep equal widths, and a larger amount never has a narrower part than a smaller one.
    """
    positive = [amount for amount in amounts if amount > 0]
    if not positive:
        return [0.0] * len(amounts)
    equal, smallest = 100 / len(positive), 100 * min(positive) / sum(positive)
    too_narrow = min(NARROWEST, equal) - smallest
    shift = too_narrow / (equal - smallest) if too_narrow > 0 else 0.0
    exact = [100 * max(amount, 0) / sum(positive) for amount in amounts]
    return [width + shift * (equal - width) if width else 0.0 for width in exact]
