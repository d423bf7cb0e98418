"""Prints the output of the bench: its progress, the figures with their budgets, and at the end the missed budgets."""

import os
import sys
import time
from collections.abc import Sequence

_started = time.monotonic()
_missed: list[str] = []


def title(text: str) -> None:
    """Print a section's title, the machine's load, and the Python build. Load and build affect the figures."""
    python = f"Python {sys.version.split()[0]} of {sys.base_prefix}"
    print(f"\n== {text} == (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {python})", flush=True)


def progress(text: str) -> None:
    """Print the current step, so that a person can see the progress."""
    sys.stderr.write(f"{time.monotonic() - _started:7.0f} s  {text}\n")


def line(text: str) -> None:
    """Print a fact that has no budget."""
    print(text, flush=True)


def judged(name: str, figure: float, budget: float | None) -> str:
    """Return the text of a figure with its budget and the verdict. If it exceeds the budget, record a missed budget."""
    if budget is None:
        return f"{figure:8.2f}"
    if figure > budget:
        miss(f"{name}: {figure:.2f}, budget {budget:g}")
    return f"{figure:8.2f} ≤ {budget:<4g} {'MISSED' if figure > budget else 'ok':<6}"


def miss(text: str) -> None:
    """Record a missed budget for the verdict."""
    _missed.append(text)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns. The first column is aligned to the left, and all others to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        first, *rest = [(cell, width) for cell, width in zip(row, widths, strict=True)]
        cells = [f"{first[0]:<{first[1]}}", *(f"{cell:>{width}}" for cell, width in rest)]
        print("  ".join(cells).rstrip(), flush=True)


def conclude() -> int:
    """Print the missed budgets. Return the exit code."""
    print("\n== verdict ==")
    for miss in _missed:
        line(f"MISSED  {miss}")
    line(f"{len(_missed)} budgets missed" if _missed else "Every budget is met.")
    return 1 if _missed else 0
