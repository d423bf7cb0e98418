"""Runs the tests of the modules in `modules.py` on mutants of these modules.

Usage: `python -m tests.mutants [slice or part of a module's name] [--at-most N]`. A mutant is killed if the
tests of its module fail. Each mutant that survives must be listed in `equivalent.py`.

Killed mutants are recorded in .local/mutants. Therefore an interrupted run continues where it stopped, and a
run with new tests tries only the survivors. If the code of a module changes, all its mutants are tried again.
Changes to comments and docstrings do not count.
"""

import argparse
import random
import sys
from collections.abc import Sequence

import pytest

from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.making import Mutant, identity, mutants
from tests.mutants.modules import SLICES, chosen_modules
from tests.mutants.running import KEPT, ROOT, Runner

AT_MOST = 1500  # mutants in a slice


class Known:
    """A record of the killed mutants of a module. It is valid for one version of the module's code."""

    def __init__(self, module: str, code: str) -> None:
        self.path = KEPT / f"{module.replace('/', '.')}.{identity(code)[:12]}.killed"
        self.killed = set(self.path.read_text().splitlines()) if self.path.exists() else set()

    def add(self, mutant: Mutant) -> None:
        with self.path.open("a") as kept:
            kept.write(f"{identity(mutant.code)}\n")


def main() -> int:
    """Run the tests on the mutants.

    Return 1 if an unlisted mutant survived or a mutant listed in `equivalent.py` was killed, else 0.
    """
    asked = _asked()
    KEPT.mkdir(parents=True, exist_ok=True)
    planned = [(module, ROOT.joinpath(module).read_text()) for module in chosen_modules(asked.part)]
    found = [mutant for module, code in planned for mutant in mutants(module, code)]
    for name, modules in SLICES.items():
        count = sum(mutant.module in modules for mutant in found)
        assert count <= AT_MOST, f"{count} mutants in the slice {name}, more than {AT_MOST}"
    known = {module: Known(module, code) for module, code in planned}
    left = [mutant for mutant in found if identity(mutant.code) not in known[mutant.module].killed]
    chosen = set(random.Random(1).sample(range(len(left)), min(asked.at_most, len(left))))
    tried = [mutant for number, mutant in enumerate(left) if number in chosen]
    print(f"{len(found)} mutants, {len(found) - len(left)} killed before, {len(tried)} tried now.")
    survived = _try_all(tried, known) if tried else []
    return _tell(found, tried, survived)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--at-most", type=int, default=AT_MOST * len(SLICES))
    return parser.parse_args()


def _try_all(tried: Sequence[Mutant], known: dict[str, Known]) -> list[Mutant]:
    """Run the tests on each mutant, and return the mutants that survived."""
    ended: dict[Mutant, bool] = {}

    def record(mutant: Mutant, killed: bool) -> None:
        ended[mutant] = killed
        if killed:
            known[mutant.module].add(mutant)
        print("." if killed else f"\nsurvived: {mutant}", end="", flush=True)

    runner = Runner(tried, record)
    if pytest.main(runner.arguments(), plugins=[runner]) or len(ended) < len(tried):
        raise SystemExit("The run ended early.")
    print()
    return [mutant for mutant, killed in ended.items() if not killed]


def _tell(found: list[Mutant], tried: list[Mutant], survived: list[Mutant]) -> int:
    """Print the results. Return 1 if an unlisted mutant survived or a listed mutant was killed, else 0."""
    listed = {(row.module, row.line, row.changed) for row in EQUIVALENT}
    unlisted = [mutant for mutant in survived if mutant[0:1] + mutant[2:4] not in listed]
    dead = [mutant for mutant in tried if mutant not in survived and mutant[0:1] + mutant[2:4] in listed]
    for module in dict.fromkeys(mutant.module for mutant in found):
        counts = [sum(mutant.module == module for mutant in rows) for rows in (found, tried, survived)]
        print("{:<34} {:>5} mutants {:>5} tried {:>4} survived".format(module, *counts))
    for mutant in unlisted:
        print(f"survived: {mutant}")
    for mutant in dead:
        print(f"listed as equivalent, and killed: {mutant}")
    return 1 if unlisted or dead else 0


if __name__ == "__main__":
    sys.exit(main())
