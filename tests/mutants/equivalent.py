"""Mutants that no test can kill, each with the reason: module, line as it is, line as it is changed, why."""

from typing import NamedTuple


class Equivalent(NamedTuple):
    """A mutant whose behaviour no test can distinguish from the module."""

    module: str
    line: str
    changed: str
    reason: str


EQUIVALENT: tuple[Equivalent, ...] = ()
