"""`make check`: refuses changes to released migrations and to the SQL files that they install.

The list of these files has the format of `sha256sum`. `make release` writes the list.
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.house.house import APPS
from tests.release import ROOT

LIST = "tests/release/released_migrations.sha256"
PATTERNS = ("**/migrations/[0-9]*.py", "**/sql/**/*.sql")


def problems(root: Path = ROOT) -> Iterator[str]:
    """Yield a sentence for each released file of the project at `root` that has changed or is missing."""
    for line in (root / LIST).read_text().splitlines():
        digest, name = line.split("  ", 1)
        if not (root / name).exists():
            yield f"{name} belongs to a released version: do not remove or rename it."
        elif _digest(root / name) != digest:
            yield f"{name} belongs to a released version: undo the change, and add a migration instead."


def write(root: Path = ROOT) -> None:
    """Write the list of all current migrations and SQL files."""
    lines = (f"{_digest(path)}  {path.relative_to(root).as_posix()}\n" for path in _files(root))
    (root / LIST).write_text("".join(lines))


def _files(root: Path) -> list[Path]:
    return sorted(path for app in APPS for pattern in PATTERNS for path in (root / app).glob(pattern))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    found = list(problems())
    print(
        "\n".join([*found, "See docs/decisions/0029-a-schema-change-takes-two-releases.md."] if found else [])
    )
    sys.exit(bool(found))
