"""Records which lines of a module each of its tests executes."""

import ast
import contextlib
import hashlib
import json
import sys
import threading
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

Lines = set[tuple[str, int]]  # the path of a file, and the number of a line
Run = tuple[float, list[int]]  # duration of a test in seconds, and the lines of the module that it executed


class Coverage:
    """The code of a module, and the run of each of its tests by its id.

    The runs are stored, and used again until the module or the files of its tests change.
    """

    def __init__(self, path: Path, tests: Sequence[Path]) -> None:
        self.file, self.code = str(path), path.read_text()
        self.runs: dict[str, Run] = {}
        self._tree = ast.parse(self.code)
        digest = hashlib.sha256(self.code.encode() + b"".join(test.read_bytes() for test in tests))
        self._name = f"{path.stem}.{digest.hexdigest()[:16]}.lines"

    def load(self, folder: Path) -> bool:
        """Read the stored runs from a folder; return whether there are any."""
        kept = folder / self._name
        self.runs = json.loads(kept.read_text()) if kept.exists() else {}
        return bool(self.runs)

    def store(self, folder: Path) -> None:
        folder.joinpath(self._name).write_text(json.dumps(self.runs))

    def statement_at(self, line: int) -> range:
        return statement_at(self._tree, line)

    def tests_of(self, line: int, kills: Mapping[str, int]) -> list[str]:
        """Return the tests that execute the statement on a line: those with most kills first, then the fastest."""
        statement = self.statement_at(line)
        tests = [test for test, (_, lines) in self.runs.items() if set(lines).intersection(statement)]
        return sorted(tests, key=lambda test: (-kills.get(test, 0), self.runs[test][0]))


@contextlib.contextmanager
def executed_lines(files: Container[str]) -> Iterator[Lines]:
    """Record the lines of these files that all threads execute within the context."""
    lines: Lines = set()

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return line(frame, event, argument) if frame.f_code.co_filename in files else None

    threading.settrace(call)
    sys.settrace(call)
    try:
        yield lines
    finally:
        sys.settrace(None)
        threading.settrace(None)


def statement_at(tree: ast.Module, line: int) -> range:
    """Return the lines of the statement to which a line belongs, without the statements nested in it.

    The range is empty if the line is not in a function.
    """
    found = range(0)
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for one in (
            node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function
        ):
            body = getattr(one, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) else one.end_lineno or 0
            if one.lineno <= line <= max(last, one.lineno):
                found = range(one.lineno, max(last, one.lineno) + 1)
    return found
