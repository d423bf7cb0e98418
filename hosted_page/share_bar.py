"""The bar of a shared bill: a part for each person, as wide as what they bear."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

NARROWEST = 4.0  # per cent: on a phone as wide as a finger's nail is thick, with the gap beside it
LETTER = 7.0  # per cent: a narrower part has no room for a letter


class Part(NamedTuple):
    """A person's part, in per cent of the bar's width; nobody sees one that is 0 wide."""

    x: str
    width: str
    label: str


def parts(people: Sequence[tuple[str, int]]) -> list[Part]:
    """Return the parts of people, each by a letter and what they bear, that fill the bar.

    static/js/split.js draws them as wide.
    """
    found = places([amount for _, amount in people])
    return [
        Part(f"{x:.3f}%", f"{width:.3f}%", label if width >= LETTER else "")
        for (label, _), (x, width) in zip(people, found, strict=True)
    ]


def places(amounts: Sequence[int]) -> list[tuple[float, float]]:
    """Return where the part of each amount begins and how wide it is, in per cent of the bar."""
    found = widths(amounts)
    return list(zip(accumulate(found[:-1], initial=0.0), found, strict=True)) if found else []


def widths(amounts: Sequence[int]) -> list[float]:
    """Return how wide the part of each amount is, in per cent of the bar: 0 for nothing.

    Where the smallest would be too narrow to see, all come nearer to equal ones until it is not: equal amounts stay
    as wide as each other, and a larger one is never narrower than a smaller.
    """
    borne = [amount for amount in amounts if amount > 0]
    if not borne:
        return [0.0] * len(amounts)
    equal, smallest = 100 / len(borne), 100 * min(borne) / sum(borne)
    too_narrow = min(NARROWEST, equal) - smallest
    nearer = too_narrow / (equal - smallest) if too_narrow > 0 else 0.0
    exact = [100 * max(amount, 0) / sum(borne) for amount in amounts]
    return [width + nearer * (equal - width) if width else 0.0 for width in exact]
