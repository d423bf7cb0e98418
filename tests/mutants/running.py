"""Runs the tests on mutants, in copies of the repository.

For each mutant, only the tests that execute the changed statement are run.
"""

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutants.making import Mutant
from tests.mutants.modules import MODULES

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".local" / "mutants"
SECONDS = 300.0


class Copy:
    """A copy of the repository's files. At any time, only one process may run tests in it."""

    def __init__(self, name: str) -> None:
        self.folder = KEPT / name
        shutil.rmtree(self.folder, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        for path in filter(None, listed.stdout.split("\0")):
            self.folder.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, self.folder / path)

    def passes(self, *arguments: str, **variables: str) -> bool:
        """Return whether pytest with these arguments passes within SECONDS."""
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
        ]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | variables
        try:
            ended = subprocess.run(
                [*command, *arguments],
                cwd=self.folder,
                env=environment,
                timeout=SECONDS,
                check=False,
                capture_output=True,
            )
        except subprocess.TimeoutExpired:
            return False
        return ended.returncode == 0

    def kills(self, mutant: Mutant, tests: Sequence[str]) -> bool:
        """Return whether one of the tests fails on the mutant or takes too long."""
        place = self.folder / mutant.module
        listed = self.folder / ".tests-of-mutant"
        listed.write_text("\n".join(tests))
        try:
            place.write_text(mutant.code)
            return not self.passes(f"@{listed}")
        finally:
            shutil.copy2(ROOT / mutant.module, place)


class Coverage:
    """For a module: its tests, fastest first, and the lines of the module that each test executes.

    This record is stored, and is used until the module or its tests change.
    """

    def __init__(self, module: str, copy: Copy) -> None:
        code = ROOT.joinpath(module).read_text()
        tests = [ROOT / "tests" / path for path in MODULES[module]]
        digest = hashlib.sha256(code.encode())
        for path in sorted(
            found for test in tests for found in (test.rglob("*.py") if test.is_dir() else [test])
        ):
            digest.update(path.read_bytes())
        kept = KEPT / f"{module.replace('/', '.')}.{digest.hexdigest()[:12]}.lines"
        if not kept.exists():
            paths = [str(path.relative_to(ROOT)) for path in tests]
            if not copy.passes("-p", "tests.mutants.tracing", *paths, TRACED=module, LINES=f"{kept}.new"):
                raise SystemExit(f"The tests of {module} fail without any change.")
            Path(f"{kept}.new").rename(kept)
        runs: dict[str, tuple[float, list[int]]] = json.loads(kept.read_text())
        self._runs = {test: set(runs[test][1]) for test in sorted(runs, key=lambda test: runs[test][0])}
        self._tree = ast.parse(code)

    def tests_of(self, line: int) -> list[str]:
        """Return the tests that execute the statement on this line.

        If the statement is executed at import, return all tests.
        """
        header = _header(self._tree, line)
        return [test for test, lines in self._runs.items() if not header or lines.intersection(header)]


def _header(tree: ast.Module, line: int) -> range:
    """Return the lines of the statement that contains this line. Statements nested in it are left out.

    The range is empty if the line is not in a function.
    """
    found = range(0)
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for one in _statements(function.body):
            body = getattr(one, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) else one.end_lineno or 0
            if one.lineno <= line <= max(last, one.lineno):
                found = range(one.lineno, max(last, one.lineno) + 1)
    return found


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a function, including nested blocks but not nested functions."""
    for one in body:
        yield one
        if not isinstance(one, ast.FunctionDef | ast.ClassDef):
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from _statements(
                    [
                        inner
                        for found in getattr(one, field, [])
                        for inner in (
                            found.body if isinstance(found, ast.ExceptHandler | ast.match_case) else [found]
                        )
                    ]
                )
