"""Finds the reasons why a version cannot be released."""

import re
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from tests.release import changelog, frozen

_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def refusals(root: Path, version: str) -> Iterator[str]:
    """Yield each reason why this version of the project at `root` cannot be released, as a sentence."""
    if not version:
        yield "Name the version: make release VERSION=1.1.0"
    elif not _VERSION.fullmatch(version):
        yield f"{version} is not a version such as 1.1.0."
    else:
        yield from _of_git(root)
        yield from _of_order(root, version)
        yield from _of_documents(root, version)
        yield from frozen.problems(root)


def _of_git(root: Path) -> Iterator[str]:
    if changes := _git(root, "status", "--porcelain").rstrip():
        yield f"Commit these changes, or remove them:\n{changes}"
    if (branch := _git(root, "branch", "--show-current").strip()) != "main":
        yield f"Releases are made on the branch main, not on {branch or 'a single commit'}."


def _of_order(root: Path, version: str) -> Iterator[str]:
    """Yield a reason if the version is already released, or is not greater than all released versions."""
    tags = {tag.removeprefix("v") for tag in _git(root, "tag", "--list", "v*").split()}
    if version in tags:
        yield f"Version {version} is released: the tag v{version} exists."
    others = filter(_VERSION.fullmatch, (tags | set(changelog.dates(root))) - {version})
    last = max(others, key=_parts, default="")
    if last and _parts(version) < _parts(last):
        yield f"{version} is not greater than {last}, the last version."


def _of_documents(root: Path, version: str) -> Iterator[str]:
    if version not in changelog.dates(root):
        yield f'CHANGELOG.md has no heading "## {version} ({date.today()})" with a valid date.'
    if "Unreleased" in changelog.headings(root):
        yield f'CHANGELOG.md has the heading "Unreleased": move its changes below the heading of {version}.'
    if f"\n### {version}\n" not in (root / "docs" / "upgrade.md").read_text():
        yield f'docs/upgrade.md has no heading "### {version}" with notes for operators.'


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout
