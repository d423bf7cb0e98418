"""The version that runs, and the log's first line, which names it."""

from collections.abc import MutableMapping
from typing import Any

import structlog

VERSION = "1.0.0"  # as in pyproject.toml; what each brought stands in CHANGELOG.md


def add(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Return a log line with the version that has written it."""
    line["version"] = VERSION
    return line


def announce(part: str) -> None:
    """Say in the log which part of the service begins, in which version."""
    structlog.get_logger("service").info("begins", part=part)
