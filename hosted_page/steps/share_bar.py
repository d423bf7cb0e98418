"""The bar of a shared bill: a part for each person, as wide as what they bear."""

from collections.abc import Sequence
from typing import NamedTuple

NARROWEST = 1.5  # per cent: two pixels and the gap beside them, on a phone
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
    widths = _widths([amount for _, amount in people])
    found, x = [], 0.0
    for (label, _), width in zip(people, widths, strict=True):
        found.append(Part(f"{x:.3f}%", f"{width:.3f}%", label if width >= LETTER else ""))
        x += width
    return found


def _widths(amounts: Sequence[int]) -> list[float]:
    total = sum(amounts) or 1
    exact = [100 * amount / total for amount in amounts]
    widened = sum(NARROWEST - width for width in exact if 0 < width < NARROWEST)
    wide = sum(width for width in exact if width >= NARROWEST) or 1
    return [
        width - widened * width / wide if width >= NARROWEST else NARROWEST if width else 0.0
        for width in exact
    ]
