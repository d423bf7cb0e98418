"""Mutants that no test can kill: the module, the original line, the changed line, and the reason."""

from typing import NamedTuple


class Equivalent(NamedTuple):
    """A mutant whose behaviour no test can distinguish from the module."""

    module: str
    line: str
    changed: str
    reason: str


EQUIVALENT: tuple[Equivalent, ...] = ()
