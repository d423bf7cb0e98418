"""Runs tests on a mutant in a new process, in a copy of the repository.

A mutant needs this if the process that has imported its module cannot be changed into it, for example because
of a changed constant, decorator or class.
"""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.child_process import call_in_child

COMMAND = (
    *(sys.executable, "-m", "pytest", "-x", "-n", "0", "-m", "not long"),
    *("-p", "no:cacheprovider", "-p", "no:tests.real_engines"),  # the engines of the parent process
)


class Copy:
    """A copy of the repository's files in a folder. Only one process at a time may run tests in it."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        shutil.rmtree(folder, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True
        )
        for path in filter(None, listed.stdout.split("\0")):
            folder.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / path, folder / path)

    def passes(self, module: str, code: str, tests: Sequence[str], seconds: float) -> bool:
        """Return whether the tests pass within this time if the module has this code."""
        listed = self.folder / ".tests-of-mutant"
        listed.write_text("\n".join(tests))
        place = self.folder / module
        place.write_text(code)
        # Python would use this file instead of other code of the same length that is written in the same second.
        Path(importlib.util.cache_from_source(place)).unlink(missing_ok=True)
        try:
            return call_in_child(lambda: self._run(f"@{listed}"), seconds) == 0
        finally:
            shutil.copy2(self.root / module, place)

    def _run(self, tests: str) -> int:
        return subprocess.run([*COMMAND, tests], cwd=self.folder, check=False).returncode
