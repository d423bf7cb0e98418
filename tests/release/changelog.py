"""Reads the versions in CHANGELOG.md, and their dates."""

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_RELEASED = re.compile(r"(\S+) \((\d{4}-\d\d-\d\d)\)")


def headings(root: Path) -> list[str]:
    """Return the headings of the versions, newest first, without the `##`."""
    return _HEADING.findall((root / "CHANGELOG.md").read_text())


def dates(root: Path) -> dict[str, date]:
    """Map each version to its date. Headings without a valid date are left out."""
    return dict(_dated(root))


def _dated(root: Path) -> Iterator[tuple[str, date]]:
    for found in filter(None, map(_RELEASED.fullmatch, headings(root))):
        try:
            yield found[1], date.fromisoformat(found[2])
        except ValueError:
            continue
