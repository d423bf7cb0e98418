"""Run tests on mutants of the money modules: `python -m tests.mutants [part of a module's name] [--at-most N]`.

A mutant is killed if the tests of its module fail. Each other mutant must be listed in `equivalent.py`. Killed mutants
are recorded in .local/mutants, so that an interrupted run continues where it stopped, and a run after new tests tries
only the survivors. A module whose code changed starts from the beginning; its comments and docstrings do not matter.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.making import Mutant, identity, mutants
from tests.mutants.modules import MODULES

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".local" / "mutants"
AT_MOST = 1500
PARALLEL = 2
SECONDS = 300.0


class Known:
    """The mutants of the present version of a module that earlier runs killed."""

    def __init__(self, module: str, code: str) -> None:
        self.path = KEPT / f"{module.replace('/', '.')}.{identity(code)[:12]}.killed"
        self.killed = set(self.path.read_text().splitlines()) if self.path.exists() else set()

    def add(self, mutant: Mutant) -> None:
        with self.path.open("a") as kept:
            kept.write(f"{identity(mutant.code)}\n")


def main() -> int:
    """Return 1 if a mutant survived that is not listed, or a listed one was killed."""
    asked = _asked()
    KEPT.mkdir(parents=True, exist_ok=True)
    planned = [(module, ROOT.joinpath(module).read_text()) for module in MODULES if asked.part in module]
    found = [mutant for module, code in planned for mutant in mutants(module, code)]
    assert len(found) <= AT_MOST, f"{len(found)} mutants, more than {AT_MOST}"
    known = {module: Known(module, code) for module, code in planned}
    left = [mutant for mutant in found if identity(mutant.code) not in known[mutant.module].killed]
    tried = random.Random(1).sample(left, min(asked.at_most, len(left)))
    print(f"{len(found)} mutants, {len(found) - len(left)} killed before, {len(tried)} tried now.")
    survived = _try_all(tried, known)
    return _tell(found, tried, survived)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--at-most", type=int, default=AT_MOST)
    return parser.parse_args()


def _try_all(tried: Iterable[Mutant], known: dict[str, Known]) -> list[Mutant]:
    """Return those that survived."""
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(PARALLEL):
        copies.put(_copied(KEPT / f"copy-{number}"))

    def is_killed(mutant: Mutant) -> bool:
        copy = copies.get()
        try:
            killed = _fails(copy, mutant)
        finally:
            copies.put(copy)
        if killed:
            known[mutant.module].add(mutant)
        print("." if killed else f"\nsurvived: {mutant}", end="", flush=True)
        return killed

    with ThreadPoolExecutor(PARALLEL) as pool:
        ended = [(mutant, pool.submit(is_killed, mutant)) for mutant in tried]
    print()
    return [mutant for mutant, killed in ended if not killed.result()]


def _copied(copy: Path) -> Path:
    """Copy the files of the repository, so that the tests of a mutant never see another mutant."""
    shutil.rmtree(copy, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        copy.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    return copy


def _fails(copy: Path, mutant: Mutant) -> bool:
    """Whether the tests of the module fail on a mutant, or do not end in time."""
    tests = [f"tests/{path}" for path in MODULES[mutant.module]]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-n",
        "0",
        "-m",
        "not long",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    place = copy / mutant.module
    try:
        place.write_text(mutant.code)
        ended = subprocess.run(
            command,
            cwd=copy,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            timeout=SECONDS,
            check=False,
            capture_output=True,
        )
        return ended.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        shutil.copy2(ROOT / mutant.module, place)


def _tell(found: list[Mutant], tried: list[Mutant], survived: list[Mutant]) -> int:
    """Print the counts and the faults; return 1 if there are faults, else 0."""
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
