"""Mutants that no test can kill, each with the reason: module, line as it is, line as it is changed, why."""

from typing import NamedTuple


class Equivalent(NamedTuple):
    """A mutant that behaves like the module itself in everything that a test may ask of it."""

    module: str
    line: str
    changed: str
    reason: str


EQUIVALENT: tuple[Equivalent, ...] = ()
