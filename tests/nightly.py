"""A pytest plugin for `make nightly`: a run of the long tests continues where the previous run was stopped.

The plugin records the tests that passed in a file in .local/nightly, one file per commit. A later run of the
same commit skips these tests. A tree with uncommitted changes counts as a different commit.
"""

import hashlib
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".local" / "nightly"


@cache
def record() -> Path:
    """Return the file with the ids of the tests that have passed."""
    state = b"".join(
        subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True).stdout
        for command in (("rev-parse", "HEAD"), ("diff", "HEAD"))
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    return FOLDER / hashlib.sha256(state).hexdigest()[:16]


def passed() -> set[str]:
    return set(record().read_text().splitlines()) if record().exists() else set()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = passed()
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in known])
    items[:] = [item for item in items if item.nodeid not in known]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record a test that passed, in the process that collects the reports."""
    if report.when == "call" and report.passed and "PYTEST_XDIST_WORKER" not in os.environ:
        with record().open("a") as file:
            file.write(f"{report.nodeid}\n")
