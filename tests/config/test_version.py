"""Which version runs is said by a command, by the log's first line and by the list of changes, alike."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from config import version
from tests.config import starting

ROOT = starting.SETTINGS.parents[1]


def test_is_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == version.VERSION


def test_stands_in_the_list_of_changes() -> None:
    assert f"\n## {version.VERSION} (" in (ROOT / "CHANGELOG.md").read_text()


def test_is_what_the_command_says() -> None:
    command = [sys.executable, str(Path("manage.py")), "version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == f"{version.VERSION}\n"


@pytest.mark.parametrize("part", ["web", "worker", "beat"])
def test_is_announced_in_the_log(part: str) -> None:
    with capture_logs(processors=[version.add]) as lines:
        version.announce(part)
    assert lines == [{"event": "begins", "part": part, "version": version.VERSION, "log_level": "info"}]
