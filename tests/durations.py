"""A pytest plugin for `make quick`: it records how long each test takes, and runs only the faster half.

The record is a file in .local. Each run adds the durations of its tests to this file. If there is no record,
`--faster-half` runs the tests that do not use the database.
"""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

RECORD = Path(__file__).resolve().parents[1] / ".local" / "durations.json"
DATABASE = {"db", "transactional_db"}

_seconds: dict[str, float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faster-half", action="store_true", help="run the faster half of the tests")


def recorded() -> dict[str, float]:
    """Map the id of each test to the seconds that its last run took."""
    found: dict[str, float] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return found


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--faster-half"):
        kept = set(faster_half(items, recorded()))
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]


def faster_half(items: list[pytest.Item], seconds: dict[str, float]) -> list[pytest.Item]:
    """Return the faster half of the tests. Tests of unknown duration are left out."""
    if not seconds:
        return [item for item in items if not _uses_database(item)]
    known = sorted((item for item in items if item.nodeid in seconds), key=lambda item: seconds[item.nodeid])
    return known[: len(items) // 2]


def _uses_database(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or bool(DATABASE & fixtures)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the durations of setup, call and teardown, in the process that collects the reports."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _seconds[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    if _seconds:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps(recorded() | _seconds))
