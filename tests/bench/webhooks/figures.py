"""Compares the figures that were measured with their bounds, and shows both in a table."""

import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass

COLUMNS = ("figure", "measured", "bound", "reference", "ratio", "")
MISSED = "MISSED"


@dataclass(frozen=True)
class Figure:
    """A line of the table. `verdict` is "ok", "MISSED", or "" if there is no bound."""

    name: str
    measured: str
    bound: str = ""
    reference: str = ""
    ratio: str = ""
    verdict: str = ""

    @property
    def is_missed(self) -> bool:
        return self.verdict == MISSED


def without_bound(name: str, value: float, unit: str) -> Figure:
    """Return a figure without a bound."""
    return Figure(name, _shown(value, unit))


def at_most(name: str, value: float, bound: float, unit: str) -> Figure:
    return Figure(name, _shown(value, unit), f"≤ {bound:g} {unit}", verdict=_verdict(value <= bound))


def at_least(name: str, value: float, bound: float, unit: str) -> Figure:
    return Figure(name, _shown(value, unit), f"≥ {bound:g} {unit}", verdict=_verdict(value >= bound))


def against(
    name: str,
    value: float,
    reference: float,
    unit: str,
    *,
    bound: float | None = None,
    ratio: float | None = None,
) -> Figure:
    """Return a figure as a multiple of its reference.

    The multiple is `ratio` if it is given, and otherwise value / reference.
    """
    multiple = value / reference if ratio is None else ratio
    line = (name, _shown(value, unit))
    shown = (_shown(reference, unit), f"{multiple:.2f} ×")
    if bound is None:
        return Figure(*line, "", *shown)
    return Figure(*line, f"≤ {bound:g} ×", *shown, _verdict(multiple <= bound))


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile: at least the proportion `share` (0 to 1) of the values is not larger than the result."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def table(figures: Sequence[Figure]) -> str:
    rows = [COLUMNS, *map(astuple, figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def progress(words: str) -> None:
    """Print the current step to standard error, so that it is separate from the table."""
    sys.stderr.write(f"  … {words}\n")
    sys.stderr.flush()


def _shown(value: float, unit: str) -> str:
    digits = 0 if abs(value) >= 1000 or value == int(value) else 1 if abs(value) >= 100 else 2
    return f"{value:,.{digits}f} {unit}"


def _verdict(is_met: bool) -> str:
    return "ok" if is_met else MISSED
