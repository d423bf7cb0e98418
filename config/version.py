"""The version and commit of the running code. The first line of the log names them."""

import os
import subprocess
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path
from typing import Any

import structlog

VERSION = "1.0.0"  # `make release` sets it; CHANGELOG.md lists the changes in each version
ROOT = Path(__file__).resolve().parent.parent


@cache
def running_version() -> str:
    """Return the version and the commit, such as "1.0.0+1a2b3c4d5e6f", or only the version.

    The commit comes from the variable COMMIT, which an image sets, or else from the git repository. If both
    are missing, only the version is returned.
    """
    commit = os.environ.get("COMMIT", "")[:12] or _read_commit()
    return f"{VERSION}+{commit}" if commit else VERSION


def _read_commit() -> str:
    if not ROOT.joinpath(".git").exists():
        return ""
    # The service's user does not own the repository, so git would refuse to read it.
    command = ("git", "-c", f"safe.directory={ROOT}", "rev-parse", "--short=12", "HEAD")
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def add(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the running version to a log line and return the line."""
    line["version"] = running_version()
    return line


def announce(part: str) -> None:
    """Log which part of the service starts. The log line also contains the version."""
    structlog.get_logger("service").info("begins", part=part)
