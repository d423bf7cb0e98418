"""Mutants that no test can kill: the module, the original line, the changed line, and the reason."""

from typing import NamedTuple


class Equivalent(NamedTuple):
    """A mutant whose behaviour no test can distinguish from the module."""

    module: str
    line: str
    changed: str
    reason: str


EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "payments/disputes.py",
        'return rows.order_by("-status", "created_at")[:1]',
        'return rows.order_by("-status", "created_at")[:2]',
        "Every caller takes the first row, or asks only whether there is one.",
    ),
)
